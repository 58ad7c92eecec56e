package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the repository.
var root = os.DirFS(filepath.Join("..", ".."))

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// find returns the files below the root with one of the extensions, leaving out
// what is fetched, built or a fixture.
func find(t *testing.T, extension string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) == extension {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("found no %s file: the test looks in the wrong place", extension)
	}
	return names
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range find(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(withoutFences(read(t, name)), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := fs.Stat(root, path.Join(path.Dir(name), target)); err != nil {
				t.Errorf("%s: link to %s: %v", name, match[1], err)
			}
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```.*?^```")

func withoutFences(markdown string) string {
	return fence.ReplaceAllString(markdown, "")
}

var adrName = regexp.MustCompile(`^docs/adr/([0-9]{4})-[a-z0-9-]+\.md$`)

func TestEveryDecisionIsNumberedIndexedAndWeighed(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/adr/README.md")
	next := 1
	for _, name := range find(t, ".md") {
		match := adrName.FindStringSubmatch(name)
		if match == nil {
			continue
		}
		if number, _ := strconv.Atoi(match[1]); number != next {
			t.Errorf("%s: number %d, want %d", name, number, next)
		}
		next++
		if !strings.Contains(index, "]("+path.Base(name)+")") {
			t.Errorf("%s is not in the index", name)
		}
		text := read(t, name)
		for _, want := range []string{"# " + match[1] + ". ", "\nStatus: ", "\n## Context\n", "\n## Decision\n", "\n## Alternatives\n", "\n## Consequences\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
	if next < 10 {
		t.Errorf("found %d decisions: the test looks in the wrong place", next-1)
	}
}

var (
	// embedded is a use of the settings that every source outside has.
	embedded   = regexp.MustCompile("outbound\\.Options `[^`]*envprefix:\"([A-Z_]+)\"")
	setting    = regexp.MustCompile("(?:^|[ `])env:\"([A-Z][A-Z0-9_]*)\"")
	documented = regexp.MustCompile("`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)`")
)

// sourceOptions is where the embedded settings are declared.
const sourceOptions = "internal/outbound/source.go"

// TestEverySettingIsDocumented compares the env tags of the processes'
// configuration structs with docs/operations.md, in both directions.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	inCode := map[string]string{}
	for _, name := range find(t, ".go") {
		if strings.HasPrefix(name, "test/") || name == sourceOptions {
			continue
		}
		text := read(t, name)
		for _, match := range setting.FindAllStringSubmatch(text, -1) {
			inCode[match[1]] = name
		}
		for _, prefix := range embedded.FindAllStringSubmatch(text, -1) {
			if strings.HasSuffix(name, "_test.go") || path.Dir(name) == path.Dir(sourceOptions) {
				continue
			}
			for _, match := range setting.FindAllStringSubmatch(read(t, sourceOptions), -1) {
				inCode[prefix[1]+match[1]] = name
			}
		}
	}
	if len(inCode) == 0 {
		t.Fatal("found no setting: the test looks for the wrong tag")
	}

	var inDocs []string
	settings, found := section(read(t, "docs/operations.md"), "Settings")
	if !found {
		t.Fatal(`docs/operations.md has no section "Settings"`)
	}
	for _, match := range documented.FindAllStringSubmatch(settings, -1) {
		inDocs = append(inDocs, match[1])
	}
	for name, file := range inCode {
		if !slices.Contains(inDocs, name) {
			t.Errorf("%s of %s is not in the settings of docs/operations.md", name, file)
		}
	}
	for _, name := range inDocs {
		if inCode[name] == "" {
			t.Errorf("docs/operations.md has the setting %s, which no process reads", name)
		}
	}
}

var (
	metric           = regexp.MustCompile(`"(glidepath_[a-z]+_[a-z_]+)"`)
	documentedMetric = regexp.MustCompile("`(glidepath_[a-z_]+)`")
)

// TestEveryMetricIsDocumented compares the names of metrics in the code with the
// tables of docs/operations.md, in both directions.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	inCode := map[string]string{}
	for _, name := range find(t, ".go") {
		if strings.HasPrefix(name, "test/") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range metric.FindAllStringSubmatch(read(t, name), -1) {
			inCode[match[1]] = name
		}
	}
	text := read(t, "docs/operations.md")
	var inDocs []string
	for _, match := range documentedMetric.FindAllStringSubmatch(text, -1) {
		inDocs = append(inDocs, match[1])
	}
	for name, file := range inCode {
		if !slices.Contains(inDocs, name) {
			t.Errorf("%s of %s is not in docs/operations.md", name, file)
		}
	}
	for _, name := range inDocs {
		if inCode[name] == "" {
			t.Errorf("docs/operations.md has the metric %s, which no process serves", name)
		}
	}
}

// section returns the text under a second-level heading.
func section(markdown, heading string) (string, bool) {
	_, after, found := strings.Cut(markdown, "\n## "+heading+"\n")
	text, _, _ := strings.Cut(after, "\n## ")
	return text, found
}
