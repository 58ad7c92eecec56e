package audit_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"hangar.io/glidepath/internal/audit"
)

func TestFieldsKeepTheirTypesOnTheirWayToTheEdge(t *testing.T) {
	h := http.Header{}
	if err := audit.Set(h, audit.Fields{"name": "ci-1", "created": true, "errors": 3}); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(h.Get(audit.Header))
	if err != nil {
		t.Fatal(err)
	}
	var v structpb.Value
	if err := proto.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	got := v.GetStructValue().AsMap()
	if got["name"] != "ci-1" || got["created"] != true || got["errors"] != 3.0 {
		t.Errorf("got %v", got)
	}
}

func TestFieldsThatEnvoyWouldDropSilentlyAreRefused(t *testing.T) {
	for name, fields := range map[string]audit.Fields{
		"more than the edge takes": {"error": strings.Repeat("x", audit.MaxHeaderBytes)},
		"text that is not UTF-8":   {"error": "\xff"},
		"a value without a form":   {"error": struct{}{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			if err := audit.Set(h, fields); err == nil || len(h) != 0 {
				t.Errorf("got %v, header %v", err, h)
			}
		})
	}
}
