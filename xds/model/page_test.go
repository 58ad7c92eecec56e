package model_test

import (
	"strings"
	"testing"

	"hangar.io/glidepath/xds/model"
)

func TestAPageThatCannotBeServedIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*model.Page)
		want   string
	}{
		"the name of an operation": {func(p *model.Page) { p.Name = "listLive" }, "the name of an operation"},
		"a path of the API":        {func(p *model.Page) { p.Path = "/v1/board" }, "no place for a page"},
		"a path with a variable":   {func(p *model.Page) { p.Path = "/{app}" }, "no place for a page"},
		"no path":                  {func(p *model.Page) { p.Path = "" }, "does not begin with a slash"},
		"nothing to show":          {func(p *model.Page) { p.Body = nil }, "0 bytes"},
		"too much to show":         {func(p *model.Page) { p.Body = make([]byte, model.MaxPageBytes+1) }, "65537 bytes"},
		"no policy":                {func(p *model.Page) { p.Policy = "" }, "no Content-Security-Policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := whole()
			e.Board = &model.Page{Name: "_board", Path: "/board", Body: []byte("x"), Policy: "default-src 'none'"}
			if err := e.Validate(); err != nil {
				t.Fatal(err)
			}
			tt.change(e.Board)
			if err := e.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
