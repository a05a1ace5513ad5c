// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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

// hider returns, for a Secret, a function that says whether a text holds one of
// its values, plain, escaped or encoded; for any other object nil. A server's refusal
// can quote what it refuses ("expected string, got 12345").
func hider(o *render.Object) func(message string) bool {
	if !o.ID.IsSecret() {
		return nil
	}
	return func(message string) bool {
		var secret struct {
			Data       map[string]any `json:"data"`
			StringData map[string]any `json:"stringData"`
		}
		decoder := json.NewDecoder(bytes.NewReader(o.JSON))
		decoder.UseNumber()
		if decoder.Decode(&secret) != nil {
			return true
		}
		for _, values := range []map[string]any{secret.Data, secret.StringData} {
			for _, value := range values {
				if quotes(message, value) {
					return true
				}
			}
		}
		return false
	}
}

// quotes looks for the leaves of a value in a text whose white space is folded.
func quotes(message string, value any) bool {
	switch value := value.(type) {
	case map[string]any: // no value that a Secret can have, but secret none the less
		for _, v := range value {
			if quotes(message, v) {
				return true
			}
		}
		return false
	case []any:
		for _, v := range value {
			if quotes(message, v) {
				return true
			}
		}
		return false
	case string:
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil && holds(message, string(plain)) {
			return true
		}
		return holds(message, value) || holds(message, base64.StdEncoding.EncodeToString([]byte(value))) // as stringData is sent
	case json.Number:
		return holds(message, value.String())
	}
	return holds(message, fmt.Sprint(value))
}

// holds looks for a text as it is, and as it is between quotation marks.
func holds(message, value string) bool {
	escaped := strconv.Quote(value)
	for _, text := range []string{value, escaped[1 : len(escaped)-1]} {
		if text = fold(text); text != "" && strings.Contains(message, text) {
			return true
		}
	}
	return false
}
