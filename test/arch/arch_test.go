package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const module = "hangar.io/glidepath"

// TestThisRepository is the architecture test.
func TestThisRepository(t *testing.T) {
	t.Parallel()
	packages, err := Load(os.DirFS(filepath.Join("..", "..")))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 5 {
		t.Fatalf("found only %d packages: the test looks in the wrong place", len(packages))
	}
	for _, fault := range Check(module, packages) {
		t.Error(fault)
	}
}

// tree is a repository in which everything is right.
func tree() fstest.MapFS {
	source := func(clause, imports string) *fstest.MapFile {
		doc := "// Package " + clause + " owns one subject of the product and nothing else.\n"
		if clause == "main" {
			doc = "// Command it runs one process of the product and nothing else.\n"
		}
		return &fstest.MapFile{Data: []byte(doc + "package " + clause + "\n\n" + imports)}
	}
	return fstest.MapFS{
		"api/api.go":                    source("api", ""),
		"api/livehubapi/gen.go":         source("livehubapi", `import _ "hangar.io/glidepath/api"`),
		"envoy/envoy.go":                source("envoy", ""),
		"internal/devenv/envoy.go":      source("devenv", `import _ "hangar.io/glidepath/envoy"`),
		"internal/cache/cache.go":       source("cache", `import _ "github.com/redis/go-redis/v9"`),
		"internal/identity/identity.go": source("identity", `import _ "github.com/golang-jwt/jwt/v5"`),
		"authz/authz.go":                source("authz", `import _ "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"`),
		"xds/server/server.go":          source("server", `import _ "github.com/envoyproxy/go-control-plane/pkg/server/v3"`),
		"services/livehub/livehub.go":   source("livehub", `import _ "hangar.io/glidepath/internal/cache"`),
		"cmd/authz/main.go":             source("main", "import _ \"hangar.io/glidepath/authz\"\nimport _ \"hangar.io/glidepath/internal/identity\""),
		"cmd/livehub/main.go":           source("main", `import _ "hangar.io/glidepath/services/livehub"`),
		"test/e2e/e2e_test.go":          source("e2e", `import _ "hangar.io/glidepath/authz"`),
	}
}

func TestASoundTreeHasNoViolation(t *testing.T) {
	t.Parallel()
	packages, err := Load(tree())
	if err != nil {
		t.Fatal(err)
	}
	if faults := Check(module, packages); len(faults) != 0 {
		t.Errorf("got violations:\n%s", strings.Join(faults, "\n"))
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	const (
		doc   = "// Package x owns one subject of the product and nothing else.\n"
		start = doc + "package x\n\n"
	)
	for name, test := range map[string]struct{ file, source, want string }{
		"api imports internal": {
			"api/x/x.go", start + `import _ "hangar.io/glidepath/internal/cache"`,
			"api/x/x.go: imports internal/cache, against the arrows",
		},
		"the bootstrap imports the contract": {
			"envoy/x.go", "package envoy\n\nimport _ \"hangar.io/glidepath/api\"",
			"envoy/x.go: imports api, against the arrows",
		},
		"internal imports a component": {
			"internal/x/x.go", start + `import _ "hangar.io/glidepath/authz"`,
			"internal/x/x.go: imports authz, against the arrows",
		},
		"a service imports another": {
			"services/x/x.go", start + `import _ "hangar.io/glidepath/services/livehub"`,
			"services/x/x.go: imports services/livehub, against the arrows",
		},
		"authz imports xds": {
			"authz/x/x.go", start + `import _ "hangar.io/glidepath/xds/server"`,
			"authz/x/x.go: imports xds/server, against the arrows",
		},
		"a test file breaks an arrow": {
			"authz/x/x_test.go", start + `import _ "hangar.io/glidepath/services/livehub"`,
			"authz/x/x_test.go: imports services/livehub, against the arrows",
		},
		"a file behind a build constraint breaks an arrow": {
			"authz/x/x.go", "//go:build never\n\n" + start + `import _ "hangar.io/glidepath/cmd/livehub"`,
			"authz/x/x.go: imports cmd/livehub, against the arrows",
		},
		"a component imports test": {
			"xds/x/x_test.go", start + `import _ "hangar.io/glidepath/test/e2e"`,
			"xds/x/x_test.go: imports test/e2e, against the arrows",
		},
		"a command imports another": {
			"cmd/x/x.go", start + `import _ "hangar.io/glidepath/cmd/authz"`,
			"cmd/x/x.go: imports cmd/authz, against the arrows",
		},
		"a new folder has no layer": {
			"pkg/x/x.go", start,
			"pkg/x: the folder is in no layer",
		},
		"a command is two components": {
			"cmd/livehub/more.go", "package main\n\nimport _ \"hangar.io/glidepath/xds/server\"",
			"cmd/livehub/more.go: imports xds, and the command is already services/livehub",
		},
		"the snapshot cache is used outside xds": {
			"internal/x/x.go", start + `import _ "github.com/envoyproxy/go-control-plane/pkg/cache/v3"`,
			"internal/x/x.go: imports github.com/envoyproxy/go-control-plane/pkg/cache/v3: xds alone serves configuration",
		},
		"ext_authz types are used outside authz": {
			"xds/x/x.go", start + `import _ "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"`,
			"xds/x/x.go: imports github.com/envoyproxy/go-control-plane/envoy/service/auth/v3: authz alone answers Envoy's checks",
		},
		"a service speaks to Redis itself": {
			"services/x/x.go", start + `import _ "github.com/redis/go-redis/v9"`,
			"services/x/x.go: imports github.com/redis/go-redis/v9: values in Redis are sealed and bounded by internal/cache",
		},
		"a service parses a token": {
			"services/x/x.go", start + `import _ "github.com/golang-jwt/jwt/v5"`,
			"services/x/x.go: imports github.com/golang-jwt/jwt/v5: backends know callers from internal/identity, never from a token",
		},
		"the process with the signing key links Redis": {
			"internal/identity/more.go", "package identity\n\nimport _ \"hangar.io/glidepath/internal/cache\"",
			"cmd/authz: reaches github.com/redis/go-redis/v9 through internal/cache/cache.go",
		},
		"a package has no doc comment": {
			"internal/x/x.go", "package x\n",
			"internal/x: the package has no doc comment",
		},
		"a doc comment is about something else": {
			"internal/x/x.go", "// Helpers for the tests of the other packages in here.\npackage x\n",
			`internal/x: the doc comment does not start with "Package x "`,
		},
		"a doc comment says nothing": {
			"internal/x/x.go", "// Package x is x.\npackage x\n",
			"internal/x: the doc comment does not say what the package owns",
		},
		"a package has an empty name": {
			"internal/util/util.go", strings.ReplaceAll(start, " x", " util"),
			`internal/util: the name "util" says nothing about what the package owns`,
		},
		"a file is too long": {
			"internal/x/x.go", start + strings.Repeat("// more\n", 600),
			"internal/x/x.go: 603 lines, more than 600",
		},
		"code sleeps": {
			"internal/x/x.go", start + "import \"time\"\n\nfunc f() { time.Sleep(1) }\n",
			"internal/x/x.go:6: time.Sleep outside a synctest bubble",
		},
		"a test sleeps on the real clock": {
			"internal/x/x_test.go", start + "import \"time\"\n\nfunc TestX(t *testing.T) {\n\tsynctest.Test(t, func(t *testing.T) { time.Sleep(1) })\n\ttime.Sleep(1)\n}\n",
			"internal/x/x_test.go:8: time.Sleep outside a synctest bubble",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := tree()
			root[test.file] = &fstest.MapFile{Data: []byte(test.source)}
			packages, err := Load(root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, Check(module, packages)); diff != "" {
				t.Errorf("violations differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadLeavesOutWhatIsNotOfTheModule(t *testing.T) {
	t.Parallel()
	root := tree()
	broken := &fstest.MapFile{Data: []byte("this is not Go")}
	root["internal/cache/testdata/x.go"] = broken
	root["vendor/x/x.go"] = broken
	root[".tools/x.go"] = broken
	root["deploy/tools/x/x.go"] = broken
	root["deploy/tools/x/go.mod"] = &fstest.MapFile{Data: []byte("module x\n")}
	if _, err := Load(root); err != nil {
		t.Error(err)
	}
}

func TestGeneratedFilesMayBeLong(t *testing.T) {
	t.Parallel()
	root := tree()
	root["api/livehubapi/long.go"] = &fstest.MapFile{Data: []byte("// Code generated by a tool. DO NOT EDIT.\n\npackage livehubapi\n" + strings.Repeat("\n", 2*maxLines))}
	packages, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if faults := Check(module, packages); len(faults) != 0 {
		t.Errorf("got violations:\n%s", strings.Join(faults, "\n"))
	}
}
