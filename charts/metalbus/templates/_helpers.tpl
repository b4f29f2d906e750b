{{- define "metalbus.labels" -}}
app.kubernetes.io/name: metalbus
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* selector takes (list root component) */ -}}
{{- define "metalbus.selector" -}}
app.kubernetes.io/name: metalbus
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* name takes (list root component) */ -}}
{{- define "metalbus.name" -}}
{{- printf "%s-%s" (index . 0).Release.Name (index . 1) | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- /* image takes (list root program) */ -}}
{{- define "metalbus.image" -}}
{{- $root := index . 0 -}}
{{- printf "%s%s/%s:%s" $root.Values.image.registry $root.Values.image.repository (index . 1) (default $root.Chart.AppVersion $root.Values.image.tag) -}}
{{- end }}

{{- define "metalbus.natsURLs" -}}
{{- if .Values.bus.urls -}}
{{- join "," .Values.bus.urls -}}
{{- else -}}
nats://{{ include "metalbus.name" (list . "nats") }}:4222
{{- end -}}
{{- end }}

{{- define "metalbus.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "metalbus.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* busEnv is how every program reaches the bus. */ -}}
{{- define "metalbus.busEnv" -}}
- {name: NATS_URL, value: {{ include "metalbus.natsURLs" . | quote }}}
- {name: CLUSTER, value: {{ .Values.cluster | quote }}}
{{- if .Values.bus.credentialsSecret }}
- {name: NATS_CREDS_FILE, value: /etc/metalbus/nats/user.creds}
{{- end }}
{{- if .Values.bus.caSecret }}
- {name: NATS_CA_FILE, value: /etc/metalbus/nats-ca/ca.crt}
{{- end }}
{{- end }}

{{- define "metalbus.busMounts" -}}
{{- if .Values.bus.credentialsSecret }}
- {name: nats, mountPath: /etc/metalbus/nats, readOnly: true}
{{- end }}
{{- if .Values.bus.caSecret }}
- {name: nats-ca, mountPath: /etc/metalbus/nats-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "metalbus.busVolumes" -}}
{{- if .Values.bus.credentialsSecret }}
- name: nats
  secret: {secretName: {{ .Values.bus.credentialsSecret }}}
{{- end }}
{{- if .Values.bus.caSecret }}
- name: nats-ca
  secret: {secretName: {{ .Values.bus.caSecret }}}
{{- end }}
{{- end }}

{{- define "metalbus.scheduling" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* webhook is one entry of a configuration, but for its name. It takes (list
root kind plural failurePolicy operations). Only the watched namespaces are asked
about, so that others are nobody's business here. */ -}}
{{- define "metalbus.webhook" -}}
{{- $root := index . 0 -}}
clientConfig:
  service:
    name: webhook-service
    namespace: {{ $root.Release.Namespace }}
    path: /validate-metal3-io-v1alpha1-{{ index . 1 }}
rules:
  - apiGroups: [metal3.io]
    apiVersions: [v1alpha1]
    operations: {{ index . 4 | toJson }}
    resources: [{{ index . 2 }}]
failurePolicy: {{ index . 3 }}
sideEffects: None
admissionReviewVersions: [v1]
{{- with $root.Values.watchNamespaces }}
namespaceSelector:
  matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end }}
{{- end }}

{{- /* projectorEnv is what the projector is told beside what all services are. */ -}}
{{- define "metalbus.projectorEnv" -}}
- {name: WATCH_NAMESPACE, value: {{ join "," .Values.watchNamespaces | quote }}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- {name: HOSTCLAIMS, value: {{ .Values.hostClaims | quote }}}
- {name: BUILD_PREPROV_IMAGE, value: {{ .Values.preprovisioningImages | quote }}}
{{- if ne .Values.webhook.mode "none" }}
- {name: WEBHOOK_PORT, value: "9443"}
- {name: GUARD_HOST_DELETION, value: {{ .Values.webhook.guardHostDeletion | quote }}}
{{- end }}
{{- if eq .Values.webhook.mode "certManager" }}
- {name: WEBHOOK_CERT_DIR, value: /etc/metalbus/webhook}
{{- end }}
{{- if .Values.switches.enabled }}
- {name: IRONIC_NETWORKING_ENABLED, value: "true"}
- {name: IRONIC_SWITCH_CONFIGS_SECRET, value: {{ .Values.switches.configsSecret | quote }}}
- {name: IRONIC_SWITCH_CREDENTIALS_SECRET, value: {{ .Values.switches.credentialsSecret | quote }}}
- {name: IRONIC_SWITCH_CREDENTIALS_PATH, value: {{ .Values.switches.credentialsPath | quote }}}
{{- end }}
{{- end }}
