{{- /*
SPDX-FileCopyrightText: The swell authors
SPDX-License-Identifier: Apache-2.0
*/}}
{{- /* The port of config.web.listen; empty: nobody listens. */}}
{{- define "swell.web" }}
{{- $listen := dig "web" "listen" "" .Values.config }}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])" $listen }}
{{- fail (printf "config.web.listen: %s: nobody outside the pod reaches this address: want :8090" $listen) }}
{{- end }}
{{- regexFind "[0-9]+$" $listen }}
{{- end }}
