{{- define "curt.name" -}}
{{- if contains "curt" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-curt" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "curt.selector" -}}
app.kubernetes.io/name: curt
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "curt.labels" -}}
{{ include "curt.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "curt.host" -}}
{{ (urlParse .Values.baseURL).hostname }}
{{- end -}}

{{- /* The roles of a fleet by name, each complete; none of a single server. As YAML. A server with only
       the role keys has nothing to do, and does not start, unless codes come out of the pool, nor has one with
       the role writer unless writes are queued. */ -}}
{{- define "curt.roles" -}}
{{- $roles := dict }}
{{- if eq .Values.mode "fleet" }}
{{- range $name, $role := .Values.roles }}
{{- $full := mergeOverwrite (deepCopy $.Values.roleDefaults) $role }}
{{- $codes := get (merge dict $full.settings $.Values.settings) "CURT_CODES" }}
{{- $writes := get (merge dict $full.settings $.Values.settings) "CURT_WRITES" }}
{{- $kind := $full.role | default $name }}
{{- if and (or (ne $kind "keys") (eq ($codes | toString) "pool")) (or (ne $kind "writer") (eq ($writes | toString) "queued")) }}
{{- $_ := set $roles $name $full }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $roles }}
{{- end -}}
