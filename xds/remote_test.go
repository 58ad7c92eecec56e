package xds

import (
	"strings"
	"testing"
)

func TestEnvoysOfOtherPodsAreServedWithCertificatesOnly(t *testing.T) {
	t.Parallel()
	whole := RemoteOptions{Listen: "0.0.0.0:18000", CertFile: "/c", KeyFile: "/k", CAFile: "/a", Clients: []string{"edge.example"}}
	for name, tt := range map[string]struct {
		change func(*RemoteOptions)
		want   string
	}{
		"nothing at all":          {func(o *RemoteOptions) { *o = RemoteOptions{} }, ""},
		"everything":              {func(*RemoteOptions) {}, ""},
		"no address":              {func(o *RemoteOptions) { o.Listen = "" }, "--xds-listen: missing"},
		"an address of nothing":   {func(o *RemoteOptions) { o.Listen = "18000" }, `--xds-listen: "18000" is not host:port`},
		"no certificate":          {func(o *RemoteOptions) { o.CertFile = "" }, "--xds-cert-file: missing"},
		"no key":                  {func(o *RemoteOptions) { o.KeyFile = "" }, "--xds-key-file: missing"},
		"no authorities":          {func(o *RemoteOptions) { o.CAFile = "" }, "--xds-client-ca-file: missing"},
		"nobody who may ask":      {func(o *RemoteOptions) { o.Clients = nil }, "--xds-clients: missing"},
		"somebody without a name": {func(o *RemoteOptions) { o.Clients = []string{"a", ""} }, "--xds-clients: missing or empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := whole
			tt.change(&o)
			opts := runOptions(t)
			opts.Remote = o
			err := opts.Validate()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("files that are not there keep it from starting", func(t *testing.T) {
		t.Parallel()
		opts := runOptions(t)
		opts.Remote = whole
		opts.Remote.Listen = "127.0.0.1:1"
		if err := Run(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "serving Envoys of other pods") {
			t.Errorf("got %v", err)
		}
	})
}
