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
