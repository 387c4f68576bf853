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

{{- /* The roles of a fleet by name, each complete; none of a single server. As YAML. */ -}}
{{- define "curt.roles" -}}
{{- $roles := dict }}
{{- if eq .Values.mode "fleet" }}
{{- range $name, $role := .Values.roles }}
{{- $_ := set $roles $name (mergeOverwrite (deepCopy $.Values.roleDefaults) $role) }}
{{- end }}
{{- end }}
{{- toYaml $roles }}
{{- end -}}
