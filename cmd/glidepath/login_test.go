package main

import (
	"bytes"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/signin"
)

func TestTheProvidersWordsDoNothingToTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	showPrompt(&out, signin.Prompt{Address: "https://dex/\x1b[2J", Code: "AB\u202eCD", Complete: "https://dex/\r\nGo to evil"})
	if got := out.String(); strings.ContainsAny(got, "\x1b\u202e\r") || strings.Count(got, "\n") != 4 || !strings.Contains(got, `"AB\u202eCD"`) {
		t.Errorf("shown: %q", got)
	}
}
