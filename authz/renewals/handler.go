package renewals

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
)

const (
	// maxBody bounds a request: as many tickets as it may have, and their quotes.
	maxBody = renewal.MaxBatch*(renewal.MaxTicketBytes+8) + 1<<10
	// bodyTime bounds how long a request's body takes to come.
	bodyTime = 2 * time.Second
	// batchTime bounds a batch. It is less than a backend waits for it.
	batchTime = 6 * time.Second
)

// Handler serves the endpoint.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+renewal.RenewPath, s.serveRenewals)
	mux.HandleFunc("GET "+renewal.EpochPath, s.serveEpoch)
	return mux
}

func (s *Server) serveRenewals(w http.ResponseWriter, r *http.Request) {
	req, err := s.read(w, r)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	if len(req.Tickets) == 0 || len(req.Tickets) > renewal.MaxBatch {
		problem.Write(w, r, problem.Newf(problem.BadRequest, "%d tickets, not 1 to %d", len(req.Tickets), renewal.MaxBatch))
		return
	}
	if !s.batches.take(r.RemoteAddr) {
		problem.Write(w, r, problem.New(problem.Busy, "too many renewals are under way"))
		return
	}
	defer s.batches.give(r.RemoteAddr)
	ctx, cancel := context.WithTimeout(r.Context(), batchTime)
	defer cancel()
	respond(w, renewal.Answers{Answers: s.renewAll(ctx, req.Tickets)})
}

// read reads a request before it gets a place among those that are decided: one
// that comes slowly holds up nobody's renewals.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (renewal.Request, error) {
	var req renewal.Request
	if !s.reading.take(r.RemoteAddr) {
		return req, problem.New(problem.Busy, "too many renewals are being read")
	}
	defer s.reading.give(r.RemoteAddr)
	conn := http.NewResponseController(w)
	if err := conn.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
		return req, fmt.Errorf("bounding the time of a request for renewals: %w", err)
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&req); err != nil {
		// Without the cause, which may quote a ticket.
		return req, problem.New(problem.BadRequest, "not a request for renewals")
	}
	// Or the server, which reads on to see whether the backend leaves, would end the batch.
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return req, fmt.Errorf("bounding the time of a request for renewals: %w", err)
	}
	return req, nil
}

func (s *Server) serveEpoch(w http.ResponseWriter, r *http.Request) {
	epoch, changed := s.cfg.Epoch()
	if r.URL.Query().Get("after") == epoch {
		if !s.held.take(r.RemoteAddr) {
			problem.Write(w, r, problem.New(problem.Busy, "too many wait for the next epoch"))
			return
		}
		defer s.held.give(r.RemoteAddr)
		hold := time.NewTimer(renewal.HoldTime)
		defer hold.Stop()
		select {
		case <-changed:
		case <-hold.C:
		case <-s.ending:
		case <-r.Context().Done():
			return
		}
		epoch, _ = s.cfg.Epoch()
	}
	respond(w, renewal.Epoch{Epoch: epoch})
}

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the backend may be gone; nobody is left to tell
}
