{{- /* The name of all objects: that of the release, which may be too long for a CronJob (52 characters). */ -}}
{{- define "edgecert.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" | trimSuffix "." -}}
{{- end -}}
