package jwks

import (
	"encoding/base64"
	"encoding/json/v2"
	"fmt"
	"strings"

	"hangar.io/glidepath/authz/token"
)

// signed is a token in the compact form of a JWS, taken apart.
type signed struct {
	alg, kid  string
	input     string // what the signature is over
	payload   []byte
	signature []byte
}

// header is what a token says of its signature. Keys and addresses of keys in
// it (jwk, jku, x5u, x5c) are not even read: a token does not choose its key.
type header struct {
	Algorithm string    `json:"alg"`
	KeyID     string    `json:"kid"`
	Type      *string   `json:"typ"`
	Content   *string   `json:"cty"`
	Zip       *string   `json:"zip"`
	Critical  *[]string `json:"crit"`
}

// parse takes a token apart. Its errors wrap ErrSignature and repeat nothing of
// the token.
func parse(t token.Token) (*signed, error) {
	parts := strings.Split(t.Secret(), ".")
	if len(parts) != 3 {
		return nil, malformed("not three parts")
	}
	var decoded [3][]byte
	for i, p := range parts {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(p)
		if err != nil {
			return nil, malformed("not base64url")
		}
		decoded[i] = raw
	}
	h, err := parseHeader(decoded[0])
	if err != nil {
		return nil, err
	}
	return &signed{
		alg: h.Algorithm, kid: h.KeyID,
		input:   t.Secret()[:len(parts[0])+1+len(parts[1])],
		payload: decoded[1], signature: decoded[2],
	}, nil
}

func parseHeader(raw []byte) (*header, error) {
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, malformed("the header is not the JSON of one")
	}
	switch {
	case methods[h.Algorithm] == nil:
		return nil, malformed("an algorithm that is not accepted")
	case h.KeyID == "":
		return nil, malformed("no key is named")
	case h.Type != nil && !strings.EqualFold(*h.Type, "JWT"):
		return nil, malformed("another type of token")
	case h.Content != nil || h.Zip != nil || h.Critical != nil:
		return nil, malformed("a form that is not accepted")
	}
	return &h, nil
}

// KeyID gives the name of the key that a token claims to be signed with. It is
// empty where Verify would not read the token's header.
func KeyID(t token.Token) string {
	head, _, _ := strings.Cut(t.Secret(), ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(head)
	if err != nil {
		return ""
	}
	h, err := parseHeader(raw)
	if err != nil {
		return ""
	}
	return h.KeyID
}

func malformed(why string) error { return fmt.Errorf("%w: %s", ErrSignature, why) }
