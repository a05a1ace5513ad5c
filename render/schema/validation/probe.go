// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

var probeTypes = types{
	core + "Container": {Self: mapping(probes)},
	core + "Probe": {Fields: map[string]Rule{"initialDelaySeconds": count, "timeoutSeconds": count, "periodSeconds": count,
		"successThreshold": count, "failureThreshold": count, "terminationGracePeriodSeconds": positive}, Self: mapping(probe)},
	core + "LifecycleHandler": {Self: mapping(hook)},
	core + "ExecAction":       {Self: mapping(exec)},
	core + "HTTPGetAction":    {Fields: map[string]Rule{"port": portOrName}},
	core + "TCPSocketAction":  {Fields: map[string]Rule{"port": portOrName}},
	core + "GRPCAction":       {Fields: map[string]Rule{"port": port}},
	core + "HTTPHeader":       {Fields: map[string]Rule{"name": texts(header)}},
}

// probes are told apart by what they may have.
func probes(m map[string]any) (found Flaws) {
	for _, name := range [...]string{"livenessProbe", "startupProbe"} {
		// Zero is a default's place.
		if n := integer(object(m, name), "successThreshold", 1); n > 1 {
			found = append(found, want("1").at("successThreshold").at(name)...)
		}
	}
	if object(m, "readinessProbe")["terminationGracePeriodSeconds"] != nil {
		found = append(found, say("remove it: a readiness probe ends no container").at("terminationGracePeriodSeconds").at("readinessProbe")...)
	}
	return found
}

func probe(m map[string]any) Flaws {
	return oneOf(m, probeHandlers, "handler")
}

var (
	probeHandlers = []string{"exec", "httpGet", "tcpSocket", "grpc"}
	hookHandlers  = []string{"exec", "httpGet", "tcpSocket", "sleep"}
)

func hook(m map[string]any) Flaws {
	return oneOf(m, hookHandlers, "handler")
}

func exec(m map[string]any) Flaws {
	if len(list(m, "command")) == 0 && (m["command"] == nil || list(m, "command") != nil) {
		return missing("command", "")
	}
	return nil
}

func header(s string) string {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '-' {
			return "letters, digits and -"
		}
	}
	return unless(s != "", "a name")
}

// sleeps finds hooks that sleep longer than a pod has to end.
func sleeps(spec map[string]any) (found Flaws) {
	grace := integer(spec, "terminationGracePeriodSeconds", 30)
	for _, field := range containerLists {
		for i, item := range list(spec, field) {
			c, _ := item.(map[string]any)
			lifecycle := object(c, "lifecycle")
			for name, h := range lifecycle {
				handler, _ := h.(map[string]any)
				if sleep := object(handler, "sleep"); sleep != nil {
					if n := integer(sleep, "seconds", 0); n < 0 || n > grace {
						found = append(found, want("at most terminationGracePeriodSeconds, and at least 0").at("seconds").at("sleep").at(name).at("lifecycle").item(i).at(field)...)
					}
				}
			}
		}
	}
	return found
}

var containerLists = [...]string{"containers", "initContainers"}
