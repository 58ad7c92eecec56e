// Package kubelet is the part of a node's kubelet that an API server asks for the logs of containers, and nothing else: no
// container runs. It answers as a real kubelet does, with its statuses, its words and its bad habits, and on demand slower,
// shorter or wrong.
//
// Whoever plays the node tells it what a real kubelet knows by itself: the pods (SetPod) and what their containers write
// (NewLog). Which log answers follows from the pod's status, as in a real one: the container ID there names the log.
package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// Config is where the kubelet listens and whom it answers. Addr, Certificate, ClientCAs and Client are required.
type Config struct {
	Addr        string          // host:port; port 0 is a free one
	Certificate tls.Certificate // shown to the API server
	ClientCAs   *x509.CertPool  // sign the certificates of those who ask
	Client      string          // the common name of the API server's certificate; no other may ask
	// LogBytes is how much of one container's log is kept; the oldest lines go first, as a log file is rotated away.
	// Zero: 1 MiB.
	LogBytes int
	// Clock is what sinceSeconds counts from. Nil: the real one.
	Clock clock.PassiveClock
}

const defaultLogBytes = 1 << 20

// Kubelet answers for one node. All methods may be called concurrently.
type Kubelet struct {
	cfg  Config
	addr string

	open  sync.RWMutex // held for reading by each request under way
	under atomic.Int64 // requests under way

	mu     sync.Mutex
	server *http.Server  // nil while down
	served chan struct{} // closed when server's accept loop has ended
	pods   map[podKey]*corev1.Pod
	logs   map[string]*Log // by container ID
	faults []*Fault
}

type podKey struct{ namespace, name string }

// Start listens until Stop.
func Start(cfg Config) (*Kubelet, error) {
	if cfg.ClientCAs == nil || cfg.Client == "" || len(cfg.Certificate.Certificate) == 0 {
		return nil, errors.New("kubelet: a certificate, or who may ask, is missing")
	}
	if cfg.LogBytes == 0 {
		cfg.LogBytes = defaultLogBytes
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	k := &Kubelet{cfg: cfg, addr: cfg.Addr, pods: map[podKey]*corev1.Pod{}, logs: map[string]*Log{}}
	if err := k.Up(); err != nil {
		return nil, err
	}
	return k, nil
}

// UnderWay is how many requests are being answered.
func (k *Kubelet) UnderWay() int { return int(k.under.Load()) }

// Addr is host:port of what the API server connects to.
func (k *Kubelet) Addr() string { return k.addr }

// Up listens again after Down, on the same address. It does nothing while the kubelet listens.
func (k *Kubelet) Up() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", k.addr)
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	k.addr = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.containerLogs)
	server := &http.Server{
		Handler: k.counted(k.allowed(mux)),
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{k.cfg.Certificate}, MinVersion: tls.VersionTLS12,
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: k.cfg.ClientCAs,
		},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // its faults are made on purpose
	}
	k.server, k.served = server, make(chan struct{})
	go func(served chan struct{}) {
		defer close(served)
		_ = server.ServeTLS(listener, "", "") // ends with Down, and says no more than that
	}(k.served)
	return nil
}

// Down closes the listener and every connection, as a node that is gone, and returns when no request is under way any more.
func (k *Kubelet) Down() {
	k.mu.Lock()
	server, served := k.server, k.served
	k.server = nil
	k.mu.Unlock()
	if server == nil {
		return
	}
	_ = server.Close()
	<-served
	k.open.Lock()
	defer k.open.Unlock()
}

// Stop ends the kubelet.
func (k *Kubelet) Stop() { k.Down() }

func (k *Kubelet) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.open.RLock()
		defer k.open.RUnlock()
		k.under.Add(1)
		defer k.under.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// allowed lets the API server in and nobody else.
func (k *Kubelet) allowed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if name := r.TLS.VerifiedChains[0][0].Subject.CommonName; name != k.cfg.Client {
			http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=get, resource=nodes, subresource(s)=[proxy])", name), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SetPod tells the kubelet of a pod, or how it stands now: its spec's containers and its container statuses. The pod must
// not be changed afterwards.
func (k *Kubelet) SetPod(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[podKey{pod.Namespace, pod.Name}] = pod
}

// RemovePod forgets a pod, and the logs of the containers that its last status names: who follows one sees it end.
func (k *Kubelet) RemovePod(namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pod := k.pods[podKey{namespace, name}]
	if pod == nil {
		return
	}
	delete(k.pods, podKey{namespace, name})
	for _, status := range statuses(pod) {
		for _, id := range []string{status.ContainerID, terminatedID(status.State), terminatedID(status.LastTerminationState)} {
			if log := k.logs[id]; log != nil {
				log.End()
				delete(k.logs, id)
			}
		}
	}
}

// NewLog begins the log of a container, whose ID is as in a pod's status: runtime://id. It replaces an earlier one.
func (k *Kubelet) NewLog(id string) *Log {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.logs[id]; old != nil {
		old.End()
	}
	log := &Log{most: k.cfg.LogBytes, changed: make(chan struct{})}
	k.logs[id] = log
	return log
}

func (k *Kubelet) pod(namespace, name string) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[podKey{namespace, name}]
}

func (k *Kubelet) log(id string) *Log {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.logs[id]
}
