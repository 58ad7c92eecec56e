package forgery

import (
	"encoding/base64"
	"encoding/json/v2"
	"strings"

	"hangar.io/glidepath/authz/token"
)

// keyID gives the name of the key that a token claims to be signed with, empty
// when it names none.
func keyID(t token.Token) string {
	head, _, _ := strings.Cut(t.Secret(), ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return ""
	}
	var h struct {
		KeyID string `json:"kid"`
	}
	if json.Unmarshal(raw, &h) != nil {
		return ""
	}
	return h.KeyID
}
