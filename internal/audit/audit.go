// Package audit owns what a backend tells the edge about a call: the fields
// that Envoy adds to the call's audit line. Envoy writes the line itself; a
// backend only hands it facts in the response header X-Glidepath-Audit, which
// the edge moves into its log metadata and never shows to the caller.
package audit

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Header is the response header that carries the fields: base64 (standard
// alphabet) of a serialized google.protobuf.Value that holds a struct. Envoy's
// header_to_metadata filter decodes it as PROTOBUF_VALUE.
const Header = "X-Glidepath-Audit"

// MaxHeaderBytes bounds the encoded header. Envoy drops a header that is too
// large without a word, so a larger one is refused here, where it can be seen.
const MaxHeaderBytes = 4 << 10

// Fields are the facts of one call by their name in the audit line. Values are
// strings, bools or numbers. The edge keeps only names that the call's
// operation is allowed to add.
type Fields map[string]any

// Encode gives the header's value, or an error when a value has no protobuf
// form or the whole is larger than MaxHeaderBytes.
func Encode(fields Fields) (string, error) {
	s, err := structpb.NewStruct(fields)
	if err != nil {
		return "", fmt.Errorf("encoding audit fields: %w", err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(structpb.NewStructValue(s))
	if err != nil {
		return "", fmt.Errorf("encoding audit fields: %w", err)
	}
	if n := base64.StdEncoding.EncodedLen(len(raw)); n > MaxHeaderBytes {
		return "", fmt.Errorf("encoding audit fields: %d bytes, more than the %d that the edge takes", n, MaxHeaderBytes)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// Set puts the fields on an answer whose header is not written yet.
func Set(h http.Header, fields Fields) error {
	v, err := Encode(fields)
	if err != nil {
		return err
	}
	h.Set(Header, v)
	return nil
}
