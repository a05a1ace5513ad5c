// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"encoding/json"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// wireBody is what is sent of an object. A Secret's stringData is sent as data:
// the server would store it so anyway, but note that we own stringData, and so
// never tell us that somebody changed the data.
func wireBody(o *render.Object) []byte {
	if !o.ID.IsSecret() {
		return o.JSON
	}
	secret, err := decodeObject(o.JSON)
	if err != nil {
		return o.JSON // the server says what is wrong with it
	}
	texts, ok := secret["stringData"].(map[string]any)
	data, isMap := secret["data"].(map[string]any)
	if !ok || !isMap && secret["data"] != nil {
		return o.JSON
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range texts {
		text, ok := value.(string)
		if !ok {
			return o.JSON
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	secret["data"] = data
	delete(secret, "stringData")
	body, err := json.Marshal(secret)
	if err != nil {
		return o.JSON
	}
	return body
}

// hider returns a function that says whether a text holds something of the
// object that may be a secret, plain, escaped or encoded; nil where there is
// nothing. A server's refusal can quote what it refuses ("expected string, got
// 12345").
func hider(o *render.Object) func(message string) bool {
	if len(o.Secrets) == 0 && !config.MaySecret(o.ID.Kind) {
		return nil
	}
	return func(message string) bool { return o.Redactor().Quotes(message) } // few are refused
}
