package results

import (
	jsonv2 "encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"time"
)

// object is what the watcher of Results reads of a PipelineRun or a TaskRun.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		UID               string            `json:"uid"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		Annotations       map[string]string `json:"annotations"`
		Labels            map[string]string `json:"labels"`
		OwnerReferences   []struct {
			Kind string `json:"kind"`
			UID  string `json:"uid"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Status struct {
		StartTime      string `json:"startTime"`
		CompletionTime string `json:"completionTime"`
		Conditions     []struct {
			Reason string `json:"reason"`
		} `json:"conditions"`
	} `json:"status"`
}

// watcherLag is how long after its creation a run is stored.
const watcherLag = 2 * time.Second

// Archive stores a PipelineRun or TaskRun as the watcher of Results does, given as
// its JSON: in the Result that its annotations, the label of an event, its owner
// or its UID names, a moment after its creation. It says which Result that is.
func (s *Server) Archive(value []byte) (result string, err error) {
	var o object
	if err := jsonv2.Unmarshal(value, &o); err != nil {
		return "", fmt.Errorf("archiving an object: %w", err)
	}
	m := o.Metadata
	if o.Kind == "" || m.Namespace == "" || m.UID == "" || m.CreationTimestamp.IsZero() {
		return "", errors.New("archiving an object: kind, namespace, uid or creationTimestamp is missing")
	}
	stored := m.CreationTimestamp.Add(watcherLag)
	rec := Record{
		Parent: m.Namespace, Result: o.result(), Name: o.record(), Type: o.APIVersion + "." + o.Kind, Value: value, Created: stored, Updated: stored,
	}
	if end, err := time.Parse(time.RFC3339, o.Status.CompletionTime); err == nil {
		rec.Updated = end.Add(watcherLag)
	}
	if err := s.PutRecord(rec); err != nil {
		return "", err
	}
	if len(m.OwnerReferences) > 0 {
		return rec.Result, nil
	}
	return rec.Result, s.PutResult(Result{
		Parent: rec.Parent, Name: rec.Result, Created: rec.Created, Updated: rec.Updated,
		Annotations: map[string]string{"object.metadata.name": m.Name},
		Summary: &Summary{
			Record: rec.Parent + "/results/" + rec.Result + "/records/" + rec.Name, Type: rec.Type,
			StartTime: o.Status.StartTime, EndTime: o.Status.CompletionTime, Status: o.status(),
		},
	})
}

// result is the Result that the object lands in.
func (o *object) result() string {
	if _, name, ok := strings.Cut(o.Metadata.Annotations["results.tekton.dev/result"], "/results/"); ok {
		return name
	}
	if event := o.Metadata.Labels["triggers.tekton.dev/triggers-eventid"]; event != "" {
		return event
	}
	for _, owner := range o.Metadata.OwnerReferences {
		if owner.Kind == "PipelineRun" {
			return owner.UID
		}
	}
	return o.Metadata.UID
}

// record is the name of the object's record.
func (o *object) record() string {
	if _, name, ok := strings.Cut(o.Metadata.Annotations["results.tekton.dev/record"], "/records/"); ok {
		return name
	}
	return o.Metadata.UID
}

// status is the summary's, from the reason alone.
func (o *object) status() string {
	if len(o.Status.Conditions) == 0 {
		return ""
	}
	switch o.Status.Conditions[0].Reason {
	case "Succeeded", "Completed":
		return "SUCCESS"
	case "Failed":
		return "FAILURE"
	case "TaskRunTimeout", "PipelineRunTimeout":
		return "TIMEOUT"
	case "TaskRunCancelled", "Cancelled":
		return "CANCELLED"
	default:
		return "" // unknown, which is left out
	}
}

// ArchiveLog stores the log of a TaskRun that is archived in a Result, with the
// record that points to it. Nil text is a log that was never stored.
func (s *Server) ArchiveLog(parent, result, taskRunUID string, text []byte, at time.Time) error {
	name := logName(resultUID(parent, result), taskRunUID)
	value, err := jsonv2.Marshal(map[string]any{
		"kind": "Log", "apiVersion": "results.tekton.dev/v1alpha3",
		"metadata": map[string]any{"name": taskRunUID + "-log", "namespace": parent, "uid": name},
		"spec":     map[string]any{"type": "File", "resource": map[string]any{"kind": "TaskRun", "namespace": parent, "uid": taskRunUID}},
		"status":   map[string]any{"size": len(text), "isStored": text != nil},
	})
	if err != nil {
		return fmt.Errorf("archiving a log: %w", err)
	}
	if err := s.PutRecord(Record{Parent: parent, Result: result, Name: name, Type: logType, Value: value, Created: at}); err != nil {
		return err
	}
	if text != nil {
		s.PutLog(parent, result, name, text)
		s.PutLog(parent, result, taskRunUID, text)
	}
	return nil
}

// resultUID is the UID that the server gives a Result.
func resultUID(parent, result string) string {
	r := &row{parent: parent, result: result}
	r.complete()
	return r.uid
}
