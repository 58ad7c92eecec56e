package renewals

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
)

const (
	// maxBody bounds a request: as many tickets as it may have, and their quotes.
	maxBody = renewal.MaxBatch*(renewal.MaxTicketBytes+8) + 1<<10
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
	if !take(s.batches) {
		problem.Write(w, r, problem.New(problem.Busy, "too many renewals are under way"))
		return
	}
	defer give(s.batches)
	var req renewal.Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&req); err != nil {
		// Without the cause, which may quote a ticket.
		problem.Write(w, r, problem.New(problem.BadRequest, "not a request for renewals"))
		return
	}
	if len(req.Tickets) == 0 || len(req.Tickets) > renewal.MaxBatch {
		problem.Write(w, r, problem.Newf(problem.BadRequest, "%d tickets, not 1 to %d", len(req.Tickets), renewal.MaxBatch))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), batchTime)
	defer cancel()
	respond(w, renewal.Answers{Answers: s.renewAll(ctx, req.Tickets)})
}

func (s *Server) serveEpoch(w http.ResponseWriter, r *http.Request) {
	epoch, changed := s.cfg.Epoch()
	if r.URL.Query().Get("after") == epoch {
		if !take(s.held) {
			problem.Write(w, r, problem.New(problem.Busy, "too many wait for the next epoch"))
			return
		}
		defer give(s.held)
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

func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

func give(places chan struct{}) { <-places }

func respond(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the backend may be gone; nobody is left to tell
}
