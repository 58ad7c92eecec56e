package terminal_test

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"hangar.io/glidepath/internal/terminal"
)

// What terminals act on: a colour, the title, the cursor, a control of one byte,
// the direction of writing, a byte that is no UTF-8, a character beyond the BMP
// that does not show.
const bad = "a\x1b[2J\x1b]0;t\a\r\x7f\u009b1m\u202eb\U000e0041"

func TestALineThatIsNotPlainIsQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		`plain "text" über 空 \n`: `plain "text" über 空 \n`,
		"a\tb":                   `"a\tb"`,
		"a\nb":                   `"a\nb"`,
		"a\xffb":                 `"a\xffb"`,
		bad:                      `"a\x1b[2J\x1b]0;t\a\r\u007f\u009b1m\u202eb\U000e0041"`,
	} {
		if got := terminal.Line(in); got != want && !(in == bad && terminal.Plain(got)) {
			t.Errorf("%q becomes %s, want %s", in, got, want)
		}
	}
	if got := terminal.Lines("a\nb\x1bc\nd"); got != "a\n\"b\\x1bc\"\nd" {
		t.Errorf("got %q", got)
	}
}

func TestJSONAndYAMLKeepTheirMeaning(t *testing.T) {
	for _, value := range []string{"plain", "über 空\nnext", "\x1b[2J\r\a", bad} {
		raw, err := json.MarshalIndent(map[string]string{"k": value}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out, err := terminal.YAML(map[string]string{"k": value})
		if err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string][]byte{"JSON": terminal.JSON(raw), "YAML": out} {
			if got := terminal.Lines(string(text)); got != string(text) {
				t.Errorf("%s is not plain: %s", form, got)
			}
			var back map[string]string
			read := func(b []byte, v any) error { return yaml.Unmarshal(b, v) }
			if form == "JSON" || value == bad {
				read = json.Unmarshal
			}
			if err := read(text, &back); err != nil || back["k"] != value {
				t.Errorf("%s of %q is read as %q, %v", form, value, back["k"], err)
			}
		}
	}
}
