{{- /* Variables by name, of a dict with root, role (CURT_ROLE or ""), adminKey and settings. As YAML. */ -}}
{{- define "curt.env" -}}
{{- $v := .root.Values }}
{{- $env := dict "CURT_DATA" "/data" "CURT_LISTEN" ":8080" "CURT_ADMIN_LISTEN" ":9090" }}
{{- $_ := set $env "CURT_BASE_URL" (required "baseURL must be set, as https://go.example.com" $v.baseURL) }}
{{- $_ := set $env "CURT_DRAIN_DELAY" (printf "%ds" (int $v.drain.delaySeconds)) }}
{{- $_ := set $env "CURT_DRAIN_LIMIT" (printf "%ds" (int $v.drain.limitSeconds)) }}
{{- with .role }}{{ $_ := set $env "CURT_ROLE" . }}{{ end }}
{{- with $v.trustedProxies }}{{ $_ := set $env "CURT_TRUSTED_PROXIES" (join "," .) }}{{ end }}
{{- if .adminKey }}{{ $_ := set $env "CURT_ADMIN_KEY_FILE" "/run/secrets/curt/admin-key" }}{{ end }}
{{- range $name, $entry := include "curt.stores" .root | fromYaml }}{{ $_ := set $env $name $entry }}{{ end }}
{{- range $name, $value := merge (deepCopy .settings) $v.settings }}
{{- if hasKey $env $name }}{{ fail (printf "settings.%s: the chart sets it from another value (see values.yaml)" $name) }}{{ end }}
{{- $_ := set $env $name (toString $value) }}
{{- end }}
{{- toYaml $env }}
{{- end -}}

{{- /* The Secret entries that settings of stores come from. As YAML. */ -}}
{{- define "curt.stores" -}}
{{- $x := .Values.external }}
{{- $env := dict }}
{{- if $x.postgresql.secret }}
{{- range $name, $key := dict "CURT_LINKS" $x.postgresql.key "CURT_LINKS_REPLICAS" $x.postgresql.replicasKey "CURT_ACCOUNTS" $x.postgresql.accountsKey "CURT_ANALYTICS" $x.postgresql.analyticsKey }}
{{- if $key }}{{ $_ := set $env $name (dict "name" $x.postgresql.secret "key" $key) }}{{ end }}
{{- end }}
{{- else if eq .Values.mode "fleet" }}
{{- fail "external.postgresql.secret must be set: servers of a fleet share links in PostgreSQL" }}
{{- end }}
{{- if ne (empty $x.kafka.secret) (empty $x.clickhouse.secret) }}
{{- fail "external.kafka.secret and external.clickhouse.secret must be set together: clicks reach ClickHouse through Kafka" }}
{{- end }}
{{- if and $x.clickhouse.secret $x.postgresql.analyticsKey }}
{{- fail "external.postgresql.analyticsKey and external.clickhouse.secret: statistics have one store" }}
{{- end }}
{{- if and (eq .Values.mode "fleet") (not $x.clickhouse.secret) (not $x.postgresql.analyticsKey) }}
{{- fail "external.clickhouse.secret or external.postgresql.analyticsKey must be set: servers of a fleet share statistics" }}
{{- end }}
{{- range $name, $store := dict "CURT_CACHE" $x.redis "CURT_EVENTS" $x.kafka "CURT_ANALYTICS" $x.clickhouse }}
{{- if $store.secret }}{{ $_ := set $env $name (dict "name" $store.secret "key" $store.key) }}{{ end }}
{{- end }}
{{- toYaml $env }}
{{- end -}}

{{- /* The list of variables for a container. */ -}}
{{- define "curt.envList" -}}
{{- range $name, $value := include "curt.env" . | fromYaml }}
{{- if kindIs "map" $value }}
- {name: {{ $name }}, valueFrom: {secretKeyRef: {name: {{ $value.name }}, key: {{ $value.key | quote }}}}}
{{- else }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* What every pod has. */ -}}
{{- define "curt.podCommon" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "curt.image" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- /* For the drain, and the last clicks. */ -}}
{{- define "curt.grace" -}}
{{ add (int .Values.drain.delaySeconds) (int .Values.drain.limitSeconds) 10 }}
{{- end -}}

{{- /* Mounts and volumes besides /data, of a dict with root and adminKey. */ -}}
{{- define "curt.mounts" -}}
{{- if .adminKey }}
- {name: admin-key, mountPath: /run/secrets/curt, readOnly: true}
{{- end }}
{{- range $i, $f := .root.Values.files }}
- {name: files-{{ $i }}, mountPath: {{ $f.path }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "curt.volumes" -}}
{{- if .adminKey }}
- name: admin-key
  secret:
    secretName: {{ .root.Values.adminKeySecret }}
    items: [{key: admin-key, path: admin-key}]
{{- end }}
{{- range $i, $f := .root.Values.files }}
{{- if $f.secret }}
- {name: files-{{ $i }}, secret: {secretName: {{ $f.secret }}}}
{{- else }}
- {name: files-{{ $i }}, configMap: {name: {{ $f.configMap }}}}
{{- end }}
{{- end }}
{{- end -}}
