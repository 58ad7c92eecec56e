package e2e_test

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Every public object goes through the API server and the gateway, and comes out as the API server has it.
func TestPublicObjectsComeThroughUnchanged(t *testing.T) {
	samples, left := publicObjects(t)
	for name, why := range left {
		t.Logf("left out: %s: %s", name, why)
	}
	if len(samples) < 150 {
		t.Fatalf("only %d runs among the cases: the test looks in the wrong place", len(samples))
	}
	comeThrough(t, "public-objects", samples, map[string]string{
		"lighthouse-activity/update-job/expected-pr.yml 0": "metadata.ownerReferences[0].uid: Required value",
		"lighthouse-activity/update-job/observed-pr.yml 0": "metadata.ownerReferences[0].uid: Required value",
	})
}

// rule: R013
func TestHostileObjectsComeThroughUnchanged(t *testing.T) {
	comeThrough(t, "hostile-objects", hostileObjects(), nil)
}

// comeThrough puts the samples into the namespace of an app of their own and reads them in every way there is. Refused
// names those that no API server takes, and why.
func comeThrough(t *testing.T, app string, samples []sample, refused map[string]string) {
	t.Helper()
	namespace := "app-" + app + "-cicd"
	if err := gw.APIServer.EnsureServiceAccount(t.Context(), namespace, "default"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gw.APIServer.DeleteNamespace(cleanupContext(t), namespace); err != nil {
			t.Error(err)
		}
	})
	labels := map[string]bool{}
	for i, s := range samples {
		err := put(t, namespace, fmt.Sprintf("object-%d", i), s)
		if why := refused[s.from]; why != "" {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: got %v, want it refused for %s", s.from, err, why)
			}
			continue
		}
		if err != nil {
			t.Errorf("the API server does not take %s: %v", s.from, err)
		}
		metadata, _ := s.object["metadata"].(object)
		set, _ := metadata["labels"].(object)
		if run, ok := set["tekton.dev/pipelineRun"].(string); ok && len(validation.IsDNS1123Label(run)) == 0 {
			labels[run] = true
		}
	}
	runs, tasks := held(t, namespace, "pipelineruns"), held(t, namespace, "taskruns")
	if len(runs)+len(tasks) != len(samples)-len(refused) {
		t.Fatalf("%d runs and %d TaskRuns are there of %d", len(runs), len(tasks), len(samples))
	}
	eventually(t, "the lists have everything", func() bool {
		all, whole := shown(t, "/v1/apps/"+app+"/live"), shown(t, "/v1/live?app="+app)
		return len(all.runs) == len(runs) && len(all.tasks) == len(tasks) && len(whole.runs) == len(runs)
	})
	all := shown(t, "/v1/apps/"+app+"/live")
	same(t, "the app's live PipelineRuns", all.runs, runs)
	same(t, "the app's live TaskRuns", all.tasks, tasks)
	same(t, "the fleet's PipelineRuns of the app", shown(t, "/v1/live?app="+app).runs, runs)
	everywhere := shown(t, "/v1/live").runs
	maps.DeleteFunc(everywhere, func(name, _ string) bool { return runs[name] == "" })
	same(t, "the fleet's PipelineRuns", everywhere, runs)
	if len(labels) == 0 {
		return
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(labels)), 200) {
		names := strings.Join(batch, ",")
		var list struct{ Items []json.RawMessage }
		selector := url.QueryEscape("tekton.dev/pipelineRun in (" + names + ")")
		rawList(t, tekton(namespace, "taskruns")+"?labelSelector="+selector, &list)
		same(t, "the fleet's TaskRuns", shown(t, "/v1/live/taskruns?app="+app+"&pipelineRuns="+names).tasks, byText(t, list.Items))
	}
}

func tekton(namespace, resource string) string {
	return "/apis/tekton.dev/v1/namespaces/" + namespace + "/" + resource
}

// put creates the object in the version it is of, then writes its status. Only what the cluster must decide is not the
// sample's: namespace, name, and what the API server sets.
func put(t *testing.T, namespace, name string, s sample) error {
	t.Helper()
	version := "tekton.dev/v1"
	if s.object["apiVersion"] == "tekton.dev/v1beta1" {
		version = "tekton.dev/v1beta1" // any other is not served by Tekton any more
	}
	metadata, _ := s.object["metadata"].(object)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = object{}
	}
	for _, field := range []string{
		"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "managedFields", "generateName",
		"deletionTimestamp", "deletionGracePeriodSeconds", "finalizers",
	} {
		delete(metadata, field)
	}
	metadata["namespace"], metadata["name"] = namespace, name
	o := maps.Clone(s.object)
	o["apiVersion"], o["kind"], o["metadata"] = version, s.kind, metadata
	path := "/apis/" + version + "/namespaces/" + namespace + "/" + strings.ToLower(s.kind) + "s"
	rest := gw.APIServer.Client.Discovery().RESTClient()
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	made, err := rest.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(text).DoRaw(t.Context())
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, made)
	}
	status, ok := o["status"]
	if !ok || status == nil {
		return nil
	}
	var current object
	decoder := json.NewDecoder(bytes.NewReader(made))
	decoder.UseNumber()
	if err := decoder.Decode(&current); err != nil {
		return err
	}
	current["status"] = status
	if text, err = json.Marshal(current); err != nil {
		return err
	}
	answer, err := rest.Put().AbsPath(path+"/"+name+"/status").SetHeader("Content-Type", "application/json").Body(text).DoRaw(t.Context())
	if err != nil {
		return fmt.Errorf("status: %w: %.300s", err, answer)
	}
	return nil
}

// held gives the text of each object as the API server has it, by name.
func held(t *testing.T, namespace, resource string) map[string]string {
	t.Helper()
	var list struct{ Items []json.RawMessage }
	rawList(t, tekton(namespace, resource), &list)
	return byText(t, list.Items)
}

func rawList(t *testing.T, uri string, into any) {
	t.Helper()
	text, err := gw.APIServer.Client.Discovery().RESTClient().Get().RequestURI(uri).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

type shownLists struct{ runs, tasks map[string]string }

// shown gives the text of each object as the gateway shows it.
func shown(t *testing.T, path string) shownLists {
	t.Helper()
	a := ok(t, get(t, path, as("reader")))
	var lists struct{ PipelineRuns, TaskRuns []json.RawMessage }
	if err := json.Unmarshal(uncompressed(t, a), &lists); err != nil {
		t.Fatal(err)
	}
	return shownLists{byText(t, lists.PipelineRuns), byText(t, lists.TaskRuns)}
}

// byText gives each object's text without managedFields and whitespace between tokens, every name, number, string and
// escape as it was written, and in its order.
func byText(t *testing.T, objects []json.RawMessage) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, o := range objects {
		var named struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(o, &named); err != nil {
			t.Fatal(err)
		}
		text, err := withoutManagedFields(o)
		if err != nil {
			t.Fatalf("%s: %v", named.Metadata.Name, err)
		}
		texts[named.Metadata.Namespace+"/"+named.Metadata.Name] = text
	}
	return texts
}

// withoutManagedFields gives an object's text without one member of its metadata.
func withoutManagedFields(raw []byte) (string, error) {
	members, err := membersOf(raw)
	if err != nil {
		return "", err
	}
	for i, m := range members {
		if m.name != "metadata" {
			continue
		}
		inner, err := membersOf(m.value)
		if err != nil {
			return "", err
		}
		inner = slices.DeleteFunc(inner, func(m member) bool { return m.name == "managedFields" })
		members[i].value = []byte(textOf(inner))
	}
	return textOf(members), nil
}

// member is one of a JSON object, its name and value as they are written but for whitespace.
type member struct {
	name   string
	quoted []byte
	value  []byte
}

func membersOf(raw []byte) ([]member, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	var members []member
	for d.PeekKind() != jsontext.KindEndObject {
		var m member
		for _, into := range []*[]byte{&m.quoted, &m.value} {
			value, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			value = value.Clone()
			if err := value.Compact(jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)); err != nil {
				return nil, err
			}
			*into = value
		}
		if err := json.Unmarshal(m.quoted, &m.name); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

func textOf(members []member) string {
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = string(m.quoted) + ":" + string(m.value)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// same compares the objects' texts and shows where the first difference of each is.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] == text {
			continue
		}
		at := 0
		for at < min(len(got[name]), len(text)) && got[name][at] == text[at] {
			at++
		}
		t.Errorf("%s: %s differs at byte %d: got %.120q, want %.120q", what, name, at, got[name][at:], text[at:])
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d objects, want %d", what, len(got), len(want))
	}
}
