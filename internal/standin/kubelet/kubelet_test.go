package kubelet

import (
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestQueriesAreReadAsARealKubeletReadsThem(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]error{
		"":                               nil,
		"follow=true&timestamps=1":       nil,
		"tailLines=0":                    nil,
		"tailLines=-1":                   errOptions,
		"tailLines=":                     errQuery,
		"tailLines=1.5":                  errQuery,
		"tailLines=1e3":                  errQuery,
		"tail=all&tailLines=x":           nil,
		"tail=7":                         nil,
		"limitBytes=0":                   errOptions,
		"limitBytes=9223372036854775808": errQuery,
		"sinceSeconds=0":                 errOptions,
		"sinceSeconds=1&sinceTime=2026-11-29T10:00:00Z": errOptions,
		"sinceTime=yesterday":                           errQuery,
		"sinceTime=2026-11-29T10:00:00.5%2B01:00":       nil,
		"unknown=1": nil,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := parse(values); got != want { //nolint:errorlint // the errors themselves
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
	for query, want := range map[string]bool{"follow": true, "follow=": true, "follow=yes": true, "follow=FALSE": false, "follow=0": false, "": false} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(values); err != nil || got.follow != want {
			t.Errorf("%q: follow is %t, %v; want %t", query, got.follow, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("follow=true&tailLines=5&sinceTime=2026-11-29T10:00:00Z&limitBytes=1&sinceSeconds=2&tail=all")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		o, err := parse(values)
		if err == nil && o.validate() != nil {
			t.Errorf("%q was taken as %+v", query, o)
		}
	})
}

func TestAContainersStateSaysWhichLogIsMeant(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	for name, tt := range map[string]struct {
		state, last corev1.ContainerState
		previous    bool
		want, fault string
	}{
		"running":                         {state: running, want: "c://now"},
		"running, the one before":         {state: running, last: ended("c://before"), previous: true, want: "c://before"},
		"running, none before":            {state: running, previous: true, fault: `previous terminated container "a" in pod "p" not found`},
		"ended":                           {state: ended("c://now"), want: "c://now"},
		"ended without ever running":      {state: ended(""), fault: `container "a" in pod "p" is terminated`},
		"ended without running again":     {state: ended(""), last: ended("c://before"), want: "c://before"},
		"waiting to run again":            {state: waiting("CrashLoopBackOff"), last: ended("c://before"), want: "c://before"},
		"waiting":                         {state: waiting("PodInitializing"), fault: `container "a" in pod "p" is waiting to start: PodInitializing`},
		"its image cannot be pulled":      {state: waiting("ErrImagePull"), fault: `container "a" in pod "p" is waiting to start: image can't be pulled`},
		"its image will not be pulled":    {state: waiting("ImagePullBackOff"), fault: `container "a" in pod "p" is waiting to start: trying and failing to pull image`},
		"nothing is known of it so far":   {fault: `container "a" in pod "p" is waiting to start - no logs yet`},
		"lost without a trace of its run": {state: waiting("Lost"), last: ended(""), fault: `container "a" in pod "p" is terminated`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
				{Name: "a", ContainerID: "c://now", State: tt.state, LastTerminationState: tt.last},
			}}}
			pod.Name = "p"
			got, err := containerID(pod, "a", tt.previous)
			if got != tt.want || (err == nil) != (tt.fault == "") || err != nil && err.Error() != tt.fault {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	pod := &corev1.Pod{}
	pod.Name = "p"
	if _, err := containerID(pod, "a", false); err == nil || err.Error() != `container "a" in pod "p" is not available` {
		t.Errorf("a container without a status: got %v", err)
	}
}

func TestALogKeepsItsNewestLinesWithinItsBound(t *testing.T) {
	t.Parallel()
	log := &Log{most: 100, changed: make(chan struct{})}
	for i := range 1000 {
		log.Append(time.Unix(int64(i), 0), []byte(strings.Repeat("x", 10)))
	}
	lines, next, ended, _ := log.from(0)
	if len(lines) != 10 || next != 1000 || ended || lines[0].at.Unix() != 990 {
		t.Errorf("got %d lines up to %d, want the last 10 of 1000", len(lines), next)
	}
	log.Append(time.Unix(1000, 0), []byte(strings.Repeat("y", 5000)))
	if lines, _, _, _ = log.from(0); len(lines) != 1 || len(lines[0].text) != 5000 {
		t.Errorf("got %d lines, want the newest alone, as long as it is", len(lines))
	}
	if got := log.tail(3); got != 1000 {
		t.Errorf("the last three lines begin at %d, want at 1000 where the log begins", got)
	}
	log.End()
	log.Append(time.Unix(1001, 0), []byte("late"))
	if _, next, ended, _ = log.from(1000); next != 1001 || !ended {
		t.Errorf("after its end the log goes to %d, ended %t", next, ended)
	}
}
