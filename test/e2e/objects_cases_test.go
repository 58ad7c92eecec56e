package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sample is a PipelineRun or TaskRun to put into the cluster.
type sample struct {
	from   string // where it comes from, for people
	kind   string
	object object
}

// publicObjects are the runs of the public cases, whatever a file holds them in. What is no run is named in left.
func publicObjects(t *testing.T) (samples []sample, left map[string]string) {
	t.Helper()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	left = map[string]string{}
	root := os.DirFS(filepath.Join(cases, "tekton"))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".json":
			err = take(name, text, &samples, left)
		case ".yaml", ".yml":
			for i, document := range bytes.Split(text, []byte("\n---\n")) {
				converted, err := yaml.YAMLToJSON(document)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if err := take(fmt.Sprintf("%s %d", name, i), converted, &samples, left); err != nil {
					return err
				}
			}
		default:
			left[name] = "not data"
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return samples, left
}

// take keeps the runs that a document holds.
func take(from string, text []byte, samples *[]sample, left map[string]string) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var o object
	if err := decoder.Decode(&o); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if records, ok := o["records"].([]any); ok {
		for i, r := range records {
			record, _ := r.(object)
			data, _ := record["data"].(object)
			value, err := base64.StdEncoding.DecodeString(fmt.Sprint(data["value"]))
			if err != nil {
				return fmt.Errorf("%s: record %d: %w", from, i, err)
			}
			if err := take(fmt.Sprintf("%s record %d", from, i), value, samples, left); err != nil {
				return err
			}
		}
		return nil
	}
	kind := kindOf(o)
	if kind != "PipelineRun" && kind != "TaskRun" {
		left[from] = fmt.Sprintf("of kind %q", kind)
		return nil
	}
	*samples = append(*samples, sample{from: from, kind: kind, object: o})
	return nil
}

// kindOf is the object's kind, or what its fields say where a file leaves it out.
func kindOf(o object) string {
	if kind, ok := o["kind"].(string); ok {
		return kind
	}
	status, _ := o["status"].(object)
	spec, _ := o["spec"].(object)
	for _, field := range []string{"steps", "podName", "taskSpec"} {
		if _, ok := status[field]; ok {
			return "TaskRun"
		}
	}
	for _, part := range []object{status, spec} {
		for _, field := range []string{"childReferences", "taskRuns", "pipelineSpec", "pipelineRef"} {
			if _, ok := part[field]; ok {
				return "PipelineRun"
			}
		}
	}
	return ""
}

// hostileObjects are runs that are hard to hand on unchanged.
func hostileObjects() []sample {
	deep := strings.Repeat(`{"a":[`, 500) + `1` + strings.Repeat(`]}`, 500)
	texts := map[string]string{
		"numbers": `{"spec":{"n":[0,-0,1,-1,1.0,1.50,1e2,1E+2,0.1,9007199254740991,9007199254740993,9223372036854775807,
			-9223372036854775808,18446744073709551615,1e300,5e-324,123456789012345678901234567890]}}`,
		"escapes": `{"spec":{"s":"\u0000\u001f\u007f\u2028\u2029\ufeff\ud83d\ude80 \u003c\u003e\u0026 \/ \" \\ \b\f\n\r\t é 漢字 🚀 \ufffd",
			"é\u0000\"\\":"a key","":"an empty key"}}`,
		"half a pair":        `{"spec":{"s":"\ud800 alone"}}`,
		"nothing":            `{"spec":{"null":null,"object":{},"array":[],"text":"","nested":[null,[],{},[[]]]}}`,
		"managed":            `{"spec":{"managedFields":[1],"metadata":{"managedFields":[2],"name":"inner"}},"status":{"metadata":{"managedFields":[3]}}}`,
		"json inside":        `{"metadata":{"annotations":{"a":"{\"managedFields\":[{\"manager\":\"x\"}]}"}},"spec":{"s":"\"}],\"managedFields\":["}}`,
		"deep":               `{"spec":` + deep + `}`,
		"a large annotation": `{"metadata":{"annotations":{"a":"` + strings.Repeat("aé🚀\\n", 18_000) + `"}}}`,
		"a megabyte":         `{"spec":{"s":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}}`,
		"many fields":        `{"status":{` + manyFields(20_000) + `}}`,
		"odd status":         `{"status":{"conditions":"not a list","startTime":7,"childReferences":{"a":[]}}}`,
	}
	var samples []sample
	for name, text := range texts {
		for _, kind := range []string{"PipelineRun", "TaskRun"} {
			decoder := json.NewDecoder(strings.NewReader(text))
			decoder.UseNumber()
			var o object
			if err := decoder.Decode(&o); err != nil {
				panic(fmt.Sprintf("%s: %v", name, err)) //nolint:forbidigo // a mistake in the table above
			}
			samples = append(samples, sample{from: "by hand: " + name, kind: kind, object: o})
		}
	}
	return samples
}

func manyFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"field%d":%d`, i, i)
	}
	return strings.Join(fields, ",")
}
