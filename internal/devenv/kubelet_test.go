package devenv_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/standin/kubelet"
)

// node is a node with a pod of three containers: one runs, one has been restarted, one waits.
type node struct {
	*kubelet.Kubelet
	namespace   string
	log, before *kubelet.Log
}

var logEpoch = time.Date(2026, 11, 29, 10, 0, 0, 123_000_000, time.UTC)

func startNode(t *testing.T, name string) node {
	t.Helper()
	k, err := api.StartKubelet()
	must(t, err)
	t.Cleanup(k.Stop)
	must(t, api.EnsureServiceAccount(t.Context(), name, "default"))
	must(t, k.Register(t.Context(), api.Client, name))
	must(t, k.Register(t.Context(), api.Client, name)) // again, as after a restart
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{
			{Name: "running", Image: "i"}, {Name: "restarted", Image: "i"}, {Name: "waiting", Image: "i"}, {Name: "unheard", Image: "i"},
		}},
	}
	pod, err = api.Client.CoreV1().Pods(name).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	pod.Status.Phase = corev1.PodRunning
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(logEpoch)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "running", ContainerID: "containerd://" + name, State: running},
		{Name: "restarted", ContainerID: "containerd://lost", State: running, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://before"},
		}},
		{Name: "waiting", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}},
	}
	pod, err = api.Client.CoreV1().Pods(name).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	k.SetPod(pod)
	return node{Kubelet: k, namespace: name, log: k.NewLog("containerd://" + name), before: k.NewLog("containerd://before")}
}

func (n node) logs(ctx context.Context, o corev1.PodLogOptions) (io.ReadCloser, error) {
	if o.Container == "" {
		o.Container = "running"
	}
	return api.Client.CoreV1().Pods(n.namespace).GetLogs("pod", &o).Stream(ctx)
}

func (n node) read(t *testing.T, o corev1.PodLogOptions) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := n.logs(ctx, o)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

func (n node) write(lines ...string) {
	for i, text := range lines {
		n.log.Append(logEpoch.Add(time.Duration(i)*time.Second), []byte(text))
	}
}

func TestAGrowingLogIsFollowedThroughTheAPIServerToItsEnd(t *testing.T) {
	n := startNode(t, "kubelet-follow")
	n.write("first")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := n.logs(ctx, corev1.PodLogOptions{Follow: true, Timestamps: true})
	must(t, err)
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	next := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v; want %q", lines.Text(), lines.Err(), want)
		}
	}
	next("2026-11-29T10:00:00.123000000Z first")
	// Each line is there before the next one is written: nothing on the way waits for more.
	for i := range 20 {
		n.log.Append(logEpoch, fmt.Appendf(nil, "line %d", i))
		next(fmt.Sprintf("2026-11-29T10:00:00.123000000Z line %d", i))
	}
	n.log.End()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
	}
}

func TestLogOptionsDoWhatTheySay(t *testing.T) {
	n := startNode(t, "kubelet-options")
	n.write("one", "two", "three")
	n.before.Append(logEpoch, []byte("of the one before"))
	n.before.End()
	for name, tt := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"everything":               {corev1.PodLogOptions{}, "one\ntwo\nthree\n"},
		"the last two":             {corev1.PodLogOptions{TailLines: new(int64(2))}, "two\nthree\n"},
		"more than there are":      {corev1.PodLogOptions{TailLines: new(int64(99))}, "one\ntwo\nthree\n"},
		"none of them":             {corev1.PodLogOptions{TailLines: new(int64(0))}, ""},
		"from a time on":           {corev1.PodLogOptions{SinceTime: &metav1.Time{Time: logEpoch.Add(time.Second)}}, "two\nthree\n"},
		"of the last second":       {corev1.PodLogOptions{SinceSeconds: new(int64(1))}, ""},
		"cut within a line":        {corev1.PodLogOptions{LimitBytes: new(int64(6))}, "one\ntw"},
		"cut with stamps":          {corev1.PodLogOptions{LimitBytes: new(int64(33)), Timestamps: true}, "2026-11-29T10:00:00.123000000Z on"},
		"of the container before":  {corev1.PodLogOptions{Container: "restarted", Previous: true}, "of the one before\n"},
		"of one whose log is lost": {corev1.PodLogOptions{Container: "restarted"}, "unable to retrieve container logs for containerd://lost"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := n.read(t, tt.options); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestWhatCannotBeReadIsSaidAsOnARealNode(t *testing.T) {
	n := startNode(t, "kubelet-refusals")
	for name, tt := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"a container that waits":       {corev1.PodLogOptions{Container: "waiting"}, `container "waiting" in pod "pod" is waiting to start: PodInitializing`},
		"a container without a status": {corev1.PodLogOptions{Container: "unheard"}, `container "unheard" in pod "pod" is not available`},
		"a container that never ended": {corev1.PodLogOptions{Previous: true}, `previous terminated container "running" in pod "pod" not found`},
		"a container the pod has not":  {corev1.PodLogOptions{Container: "absent"}, "container absent is not valid for pod pod"},
		"an option out of range":       {corev1.PodLogOptions{LimitBytes: new(int64(0))}, "limitBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := n.read(t, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	n.RemovePod(n.namespace, "pod")
	if got, err := n.read(t, corev1.PodLogOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that the node does not know: got %q, %v", got, err)
	}
}

func TestEachFaultOfANodeReachesWhoeverReads(t *testing.T) {
	n := startNode(t, "kubelet-faults")
	n.write("one", "two", "three")
	begun := time.Now()
	n.SetFaults(kubelet.Fault{Delay: 200 * time.Millisecond, Slow: 50 * time.Millisecond})
	if got, err := n.read(t, corev1.PodLogOptions{}); err != nil || got != "one\ntwo\nthree\n" || time.Since(begun) < 350*time.Millisecond {
		t.Errorf("slow: got %q, %v after %v", got, err, time.Since(begun))
	}
	n.SetFaults(kubelet.Fault{Cut: 6})
	// The API server ends its own answer as if the log had ended: nothing tells a reader that more was to come.
	if got, err := n.read(t, corev1.PodLogOptions{}); err != nil || got != "one\ntw" {
		t.Errorf("cut: got %q, %v; want the beginning", got, err)
	}
	n.SetFaults(kubelet.Fault{Sentence: true, Container: "running"})
	if got, err := n.read(t, corev1.PodLogOptions{}); err != nil || !strings.HasPrefix(got, "unable to retrieve container logs") {
		t.Errorf("a sentence: got %q, %v; want it as if it were the log", got, err)
	}
	n.SetFaults(kubelet.Fault{Pod: "other", Status: 500}, kubelet.Fault{Status: 500, Body: "broken on purpose", Times: 1})
	if got, err := n.read(t, corev1.PodLogOptions{}); err == nil || !strings.Contains(err.Error(), "broken on purpose") {
		t.Errorf("a status: got %q, %v", got, err)
	}
	if got, err := n.read(t, corev1.PodLogOptions{}); err != nil || got != "one\ntwo\nthree\n" {
		t.Errorf("after the fault: got %q, %v", got, err)
	}
	n.Down()
	if got, err := n.read(t, corev1.PodLogOptions{}); err == nil {
		t.Errorf("away: got %q, want an error", got)
	}
	must(t, n.Up())
	if got, err := n.read(t, corev1.PodLogOptions{}); err != nil || got != "one\ntwo\nthree\n" {
		t.Errorf("back: got %q, %v", got, err)
	}
}

func TestAnyBytesOfAnyLengthComeThrough(t *testing.T) {
	n := startNode(t, "kubelet-bytes")
	long := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB in one line
	odd := []byte("\xff\xfe caf\xe9 \x00 \x1b[31m \xed\xa0\x80 \r half a rune \xe2\x82")
	n.log.Append(logEpoch, odd)
	if got, err := n.read(t, corev1.PodLogOptions{}); err != nil || got != string(odd)+"\n" {
		t.Errorf("got %q, %v", got, err)
	}
	n.log.Append(logEpoch, long)
	if got, err := n.read(t, corev1.PodLogOptions{TailLines: new(int64(1))}); err != nil || got != string(long)+"\n" {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(long)+1)
	}
}

func TestANodeAnswersTheAPIServerAlone(t *testing.T) {
	n := startNode(t, "kubelet-callers")
	n.write("secret")
	files := api.Kubelet()
	own, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(api.Admin.CAData)
	for name, tt := range map[string]struct {
		certificates []tls.Certificate
		want         int
	}{
		"without a certificate":               {nil, http.StatusUnauthorized},
		"with another one of the same signer": {[]tls.Certificate{own}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: tt.certificates, MinVersion: tls.VersionTLS12}}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+n.Addr()+"/containerLogs/"+n.namespace+"/pod/running", nil)
			must(t, err)
			resp, err := (&http.Client{Transport: transport}).Do(req)
			must(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			must(t, err)
			if resp.StatusCode != tt.want || strings.Contains(string(body), "secret") {
				t.Errorf("got %d %q, want %d", resp.StatusCode, body, tt.want)
			}
		})
	}
	if files.Client == "" || files.ClientCA == "" {
		t.Errorf("a process of its own is told %+v", files)
	}
}
