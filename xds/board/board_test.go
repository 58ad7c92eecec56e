package board_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"hangar.io/glidepath/xds/board"
)

func TestThePageIsOneFileWithOneScriptAndOneStyle(t *testing.T) {
	t.Parallel()
	html := board.HTML()
	for _, element := range []string{"<script>", "<style>"} {
		if n := bytes.Count(html, []byte(element)); n != 1 {
			t.Errorf("%d times %s", n, element)
		}
	}
	for what, pattern := range map[string]string{
		"a handler in markup":      `(?i)<[^>]+\son[a-z]+\s*=`,
		"a style in markup":        `(?i)<[^>]+\sstyle\s*=`,
		"markup made of text":      `innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|srcdoc`,
		"a token that is kept":     `localStorage|sessionStorage|indexedDB|document\.cookie|history\.|caches\b`,
		"something from elsewhere": `(?i)(src|href)="(https?:)?//`,
		"a field with a name":      `(?i)<input[^>]+\sname\s*=`,
	} {
		if found := regexp.MustCompile(pattern).Find(html); found != nil {
			t.Errorf("%s: %s", what, found)
		}
	}
	if len(html) > 32<<10 {
		t.Errorf("%d bytes", len(html))
	}
}

func TestThePolicyLetsNothingInButThePagesOwn(t *testing.T) {
	t.Parallel()
	policy := board.Policy()
	for _, want := range []string{
		"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "script-src 'sha256-", "style-src 'sha256-",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s is missing: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("the policy is %s", policy)
	}
	board.HTML()[0] = 'x'
	if board.HTML()[0] == 'x' {
		t.Error("the page can be changed")
	}
}
