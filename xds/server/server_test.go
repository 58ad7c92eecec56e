package server

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// serving is a server on a socket, with its store.
type serving struct {
	*Server
	socket string
	store  *Store
}

func serve(t *testing.T) *serving {
	t.Helper()
	store, dir := newStore(t)
	s := &serving{
		Server: New(store, NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler)),
		socket: filepath.Join(dir, "xds.sock"),
		store:  store,
	}
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// fakeEnvoy speaks delta ADS as Envoy does.
type fakeEnvoy struct {
	t      *testing.T
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func (s *serving) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *serving) connect(t *testing.T) *fakeEnvoy {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial(t)).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeEnvoy{t: t, stream: stream}
}

func (e *fakeEnvoy) send(r *discoveryv3.DeltaDiscoveryRequest) {
	e.t.Helper()
	r.Node = &corev3.Node{Id: "any"}
	if err := e.stream.Send(r); err != nil {
		e.t.Fatal(err)
	}
}

func (e *fakeEnvoy) receive() *discoveryv3.DeltaDiscoveryResponse {
	e.t.Helper()
	r, err := e.stream.Recv()
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// subscribe asks for a type and takes what comes.
func (e *fakeEnvoy) subscribe(typeURL string, names ...string) *discoveryv3.DeltaDiscoveryResponse {
	e.t.Helper()
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names})
	r := e.receive()
	e.take(r)
	return r
}

func (e *fakeEnvoy) take(r *discoveryv3.DeltaDiscoveryResponse) {
	e.t.Helper()
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce})
}

func (e *fakeEnvoy) refuse(r *discoveryv3.DeltaDiscoveryResponse) {
	e.t.Helper()
	e.send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce, ErrorDetail: &statuspb.Status{Code: int32(codes.InvalidArgument), Message: "bad"},
	})
}

// takeAll does what an Envoy does when it starts.
func (e *fakeEnvoy) takeAll() {
	e.t.Helper()
	e.subscribe(resourcev3.ClusterType)
	e.subscribe(resourcev3.ListenerType)
	e.subscribe(resourcev3.RouteType, "edge")
}

// connectAndRefuse is an Envoy that takes no clusters; when it returns, its
// refusal was heard.
func (s *serving) connectAndRefuse(t *testing.T) {
	t.Helper()
	e := s.connect(t)
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ClusterType})
	e.refuse(e.receive())
	e.subscribe(resourcev3.ListenerType)
}

func names(r *discoveryv3.DeltaDiscoveryResponse) []string {
	var out []string
	for _, one := range r.Resources {
		out = append(out, one.Name)
	}
	slices.Sort(out)
	return out
}

func (s *serving) publish(t *testing.T, snap *Snapshot) bool {
	t.Helper()
	changed, err := s.Publish(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// wantStale compares the gauge.
func (s *serving) wantStale(t *testing.T, want float64) {
	t.Helper()
	var m dto.Metric
	if err := s.metrics.stale.Write(&m); err != nil {
		t.Fatal(err)
	}
	if got := m.GetGauge().GetValue(); got != want {
		t.Errorf("stale is %v, want %v", got, want)
	}
}

// wantStored waits until a version is on disk.
func (s *serving) wantStored(t *testing.T, version string) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if snap, err := s.store.Load(); err == nil && snap.Version() == version {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("version %s was never stored", version)
		}
	}
}

func TestAnEnvoyGetsEverythingAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	s := serve(t)
	if err := s.Ready(); err == nil {
		t.Error("ready with nothing to serve")
	}
	first, second := snapshot(t, time.Second), snapshot(t, 2*time.Second)
	s.publish(t, first)
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	e := s.connect(t)
	if got := names(e.subscribe(resourcev3.ClusterType)); !slices.Equal(got, []string{"authz", "livehub"}) {
		t.Errorf("clusters %v", got)
	}
	if got := names(e.subscribe(resourcev3.ListenerType)); !slices.Equal(got, []string{"edge"}) {
		t.Errorf("listeners %v", got)
	}
	if got := names(e.subscribe(resourcev3.RouteType, "edge")); !slices.Equal(got, []string{"edge"}) {
		t.Errorf("routes %v", got)
	}
	s.wantStored(t, first.Version())

	if s.publish(t, snapshot(t, time.Second)) {
		t.Error("a snapshot that says nothing new counts as a change")
	}
	if !s.publish(t, second) {
		t.Error("a snapshot that says something new counts as none")
	}
	r := e.receive() // would be a cluster, had the one before been sent
	if r.TypeUrl != resourcev3.RouteType || !slices.Equal(names(r), []string{"edge"}) || r.SystemVersionInfo != second.types[resourcev3.RouteType] {
		t.Errorf("got %s %v of version %s", r.TypeUrl, names(r), r.SystemVersionInfo)
	}
	e.take(r)
	s.wantStored(t, second.Version())
}

func TestAnEnvoyThatAlreadyHasItGetsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.publish(t, snapshot(t, time.Second))
	versions := map[string]string{}
	for _, r := range s.connect(t).subscribe(resourcev3.ClusterType).Resources {
		versions[r.Name] = r.Version
	}
	again := s.connect(t)
	again.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ClusterType, InitialResourceVersions: versions})
	again.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.ListenerType})
	if r := again.receive(); r.TypeUrl == resourcev3.ClusterType && len(r.Resources) > 0 {
		t.Errorf("it is sent %v again", names(r))
	}
}

func TestARefusedSnapshotIsTakenBack(t *testing.T) {
	t.Parallel()
	s := serve(t)
	good, bad := snapshot(t, time.Second), snapshot(t, 2*time.Second)
	s.publish(t, good)
	e := s.connect(t)
	e.takeAll()
	s.wantStored(t, good.Version())

	s.publish(t, bad)
	s.wantStale(t, 0)
	e.refuse(e.receive())
	r := e.receive()
	if want := good.types[resourcev3.RouteType]; r.TypeUrl != resourcev3.RouteType || r.SystemVersionInfo != want {
		t.Errorf("got %s of version %s, want the routes of version %s", r.TypeUrl, r.SystemVersionInfo, want)
	}
	e.take(r)

	// An Envoy that starts now gets what the other one took.
	other := s.connect(t)
	if got, want := other.subscribe(resourcev3.RouteType, "edge").SystemVersionInfo, good.types[resourcev3.RouteType]; got != want {
		t.Errorf("a new Envoy gets version %s, want %s", got, want)
	}
	s.wantStored(t, good.Version())
	s.wantStale(t, 1)
	s.publish(t, good) // as when the file is put right
	s.wantStale(t, 0)
}

func TestTheFirstSnapshotHasNoOtherToGoBackTo(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := snapshot(t, time.Second)
	s.publish(t, first)
	s.connectAndRefuse(t) // and what it did not refuse is still served
	if _, err := s.store.Load(); err == nil {
		t.Error("a refused snapshot was stored")
	}
	s.wantStale(t, 1)
	s.publish(t, first) // as when the file was only written anew
	s.wantStale(t, 1)
	t.Run("until an Envoy takes it", func(t *testing.T) {
		s.connect(t).takeAll()
		s.wantStored(t, first.Version())
		s.wantStale(t, 0)
	})
}

func TestAnotherSnapshotEndsTheRefusalOfTheFirst(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.publish(t, snapshot(t, time.Second))
	s.connectAndRefuse(t)
	s.wantStale(t, 1)
	s.publish(t, snapshot(t, 2*time.Second))
	s.wantStale(t, 0)
}

func TestAPolicyThatIsBadStaysStaleWhateverAnEnvoyTakes(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := snapshot(t, time.Second)
	s.publish(t, first)
	s.connectAndRefuse(t)
	s.KeepServing()
	s.connect(t).takeAll()
	s.wantStored(t, first.Version())
	s.wantStale(t, 1)
}

func TestAFileThatIsPutRightDoesNotHideARefusal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := snapshot(t, time.Second)
	s.publish(t, first)
	s.connectAndRefuse(t)
	s.KeepServing()
	s.publish(t, first) // nothing is sent anew, so no second refusal will come
	s.wantStale(t, 1)
}

func TestOneEnvoyThatRefusesWhatAnotherTookIsSeen(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first := snapshot(t, time.Second)
	s.publish(t, first)
	s.connect(t).takeAll()
	s.wantStored(t, first.Version())
	s.wantStale(t, 0)
	s.connectAndRefuse(t)
	s.wantStale(t, 1)
	s.publish(t, snapshot(t, 2*time.Second))
	s.wantStale(t, 0)
}

func TestTheStoredSnapshotIsServedAgain(t *testing.T) {
	t.Parallel()
	before := serve(t)
	if _, err := before.PublishStored(t.Context()); err == nil {
		t.Error("an empty store was published")
	}
	want := snapshot(t, time.Second)
	if err := before.store.Save(want); err != nil {
		t.Fatal(err)
	}
	version, err := before.PublishStored(t.Context())
	if err != nil || version != want.Version() {
		t.Fatalf("published %s, %v", version, err)
	}
	if got := before.connect(t).subscribe(resourcev3.ClusterType).SystemVersionInfo; got != want.types[resourcev3.ClusterType] {
		t.Errorf("served version %s", got)
	}
}

func TestOnlyTheDeltaProtocolIsServed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.publish(t, snapshot(t, time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(s.dial(t)).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerToSomethingElseIsIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t)
	good := snapshot(t, time.Second)
	s.publish(t, good)
	e := s.connect(t)
	e.takeAll()
	s.wantStored(t, good.Version())
	s.publish(t, snapshot(t, 2*time.Second))
	r := e.receive()
	r.Nonce = "999"
	e.refuse(r) // of a response that was never sent: nothing is taken back
	other := s.connect(t)
	if got := other.subscribe(resourcev3.RouteType, "edge").SystemVersionInfo; got == good.types[resourcev3.RouteType] {
		t.Error("the snapshot was taken back")
	}
}

// otherClusters is a snapshot that differs in its routes and in its clusters.
func otherClusters(t *testing.T) *Snapshot {
	t.Helper()
	r := resources(t, 2*time.Second)
	r.Clusters = append(r.Clusters, &clusterv3.Cluster{Name: "runs", ConnectTimeout: durationpb.New(time.Second)})
	s, err := NewSnapshot(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASnapshotIsGoodOnlyWhenAllOfItIsTaken(t *testing.T) {
	t.Parallel()
	s := serve(t)
	good := snapshot(t, time.Second)
	s.publish(t, good)
	e := s.connect(t)
	e.takeAll()
	s.wantStored(t, good.Version())

	s.publish(t, otherClusters(t))
	r := e.receive()
	if r.TypeUrl != resourcev3.ClusterType {
		t.Fatalf("got %s before the clusters", r.TypeUrl)
	}
	e.take(r)             // and now the new routes are refused,
	e.refuse(e.receive()) // which takes the clusters back too
	seen := map[string]string{}
	for range 2 {
		r := e.receive()
		seen[r.TypeUrl] = r.SystemVersionInfo
		e.take(r)
	}
	if seen[resourcev3.RouteType] != good.types[resourcev3.RouteType] || seen[resourcev3.ClusterType] != good.types[resourcev3.ClusterType] {
		t.Errorf("got the versions %v, want %v", seen, good.types)
	}
	s.wantStored(t, good.Version())
}

// again is an Envoy that connects once more after xds was away.
func (s *serving) again(t *testing.T, has *Snapshot) *fakeEnvoy {
	t.Helper()
	e := s.connect(t)
	for typeURL := range has.types {
		r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, InitialResourceVersions: has.cache.GetVersionMap(typeURL)}
		if typeURL == resourcev3.RouteType {
			r.ResourceNamesSubscribe = []string{"edge"}
		}
		e.send(r)
	}
	return e
}

func TestAnEnvoyThatComesBackWithEverythingHasTakenIt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	good := snapshot(t, time.Second)
	s.publish(t, good)
	s.again(t, good)
	s.wantStored(t, good.Version())
}

func TestAfterARestartTheStoredSnapshotIsWhatARefusalGoesBackTo(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(t *testing.T, s *serving, good *Snapshot){
		"which was served first":          func(t *testing.T, s *serving, good *Snapshot) { t.Helper(); s.publish(t, good) },
		"though something else is served": func(*testing.T, *serving, *Snapshot) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			good := snapshot(t, time.Second)
			if err := s.store.Save(good); err != nil {
				t.Fatal(err)
			}
			first(t, s, good)
			s.publish(t, snapshot(t, 2*time.Second))
			e := s.connect(t)
			e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resourcev3.RouteType, ResourceNamesSubscribe: []string{"edge"}})
			e.refuse(e.receive())
			if got := e.receive().SystemVersionInfo; got != good.types[resourcev3.RouteType] {
				t.Errorf("got version %s, want %s", got, good.types[resourcev3.RouteType])
			}
		})
	}
}
