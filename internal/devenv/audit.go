package devenv

import (
	"bufio"
	"context"
	_ "embed" // the audit policy
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
)

// auditPolicy records what the gateway asks of the API server: reviews, lists and watches.
//
//go:embed audit-policy.yaml
var auditPolicy []byte

const auditSettle = 10 * time.Second

// AuditEvent is one request that reached the API server. Watches count when they begin.
type AuditEvent struct {
	Verb       string // create, get, list, watch, ...
	User       string
	UserAgent  string
	Resource   string // as in the URL: tokenreviews, pipelineruns
	Namespace  string // empty for cluster-wide requests
	Name       string
	RequestURI string
	Code       int             // of the answer
	Object     json.RawMessage // the request's body for SubjectAccessReviews, else nil: tokens are not recorded
	At         time.Time       // when the request arrived
}

// auditLine is the part of an audit.k8s.io/v1 Event that is of use here.
type auditLine struct {
	AuditID                  string          `json:"auditID"`
	Stage                    string          `json:"stage"`
	Verb                     string          `json:"verb"`
	RequestURI               string          `json:"requestURI"`
	UserAgent                string          `json:"userAgent"`
	RequestReceivedTimestamp time.Time       `json:"requestReceivedTimestamp"`
	RequestObject            json.RawMessage `json:"requestObject"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// AuditMark is a place in the audit log: what comes after it is later.
type AuditMark int64

// AuditMark returns the end of the audit log once every request that was answered before the call is in it.
func (a *APIServer) AuditMark(ctx context.Context) (AuditMark, error) {
	end, _, err := a.settle(ctx, 0)
	return end, err
}

// Audit returns the requests recorded after the mark; those answered before the call are all there. The zero mark is the
// beginning. It fails once the log was rotated, at 100 MB.
func (a *APIServer) Audit(ctx context.Context, after AuditMark) ([]AuditEvent, error) {
	_, events, err := a.settle(ctx, after)
	return events, err
}

// settle makes a request of its own and reads on until that is recorded. The API server answers before it records, so the
// record of an answered request may be a moment away.
func (a *APIServer) settle(ctx context.Context, after AuditMark) (AuditMark, []AuditEvent, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, auditSettle, errors.New("the audit log does not show the request that marks its end"))
	defer cancel()
	uri := "/version?mark=" + uuid.NewString()
	if err := a.Client.Discovery().RESTClient().Get().RequestURI(uri).Do(ctx).Error(); err != nil {
		return 0, nil, fmt.Errorf("marking the audit log: %w", err)
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		end, events, err := readAudit(a.file("audit.log"), after, uri)
		if err != nil || end > 0 {
			return end, events, err
		}
		select {
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// readAudit reads the log up to the line of the request with the given URI. The end is 0 when it is not there yet.
func readAudit(path string, after AuditMark, until string) (end AuditMark, events []AuditEvent, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(int64(after), io.SeekStart); err != nil {
		return 0, nil, fmt.Errorf("reading the audit log: %w", err)
	}
	lines := bufio.NewReader(f)
	seen := map[string]bool{}
	for {
		data, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return 0, nil, nil
		}
		if err != nil {
			return 0, nil, fmt.Errorf("reading the audit log: %w", err)
		}
		after += AuditMark(len(data))
		var line auditLine
		if err := json.Unmarshal(data, &line); err != nil {
			return 0, nil, fmt.Errorf("reading a line of the audit log: %w", err)
		}
		if line.RequestURI == until {
			return after, events, nil
		}
		if !seen[line.AuditID] { // a watch has a line when it begins and one when it ends
			seen[line.AuditID] = true
			events = append(events, line.event())
		}
	}
}

func (l *auditLine) event() AuditEvent {
	return AuditEvent{
		Verb: l.Verb, User: l.User.Username, UserAgent: l.UserAgent, Resource: l.ObjectRef.Resource, Namespace: l.ObjectRef.Namespace,
		Name: l.ObjectRef.Name, RequestURI: l.RequestURI, Code: l.ResponseStatus.Code, Object: l.RequestObject, At: l.RequestReceivedTimestamp,
	}
}
