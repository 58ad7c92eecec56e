package results

import (
	"net/http"
)

const (
	logType = "results.tekton.dev/v1alpha3.Log"
	// chunk is how much of a log is sent at once, with a newline behind it.
	chunk = 32 << 10
)

// serveLog sends the text of a log, found by the name of its record or by the UID
// of its TaskRun.
func (s *Server) serveLog(w http.ResponseWriter, t target) error {
	s.store.mu.Lock()
	text, stored := s.store.logs[t.parent+"/"+t.result+"/"+t.name]
	known := false
	if table := s.store.records[t.parent+"/"+t.result]; table != nil {
		_, known = table.byName[t.parent+"/results/"+t.result+"/records/"+t.name]
	}
	s.store.mu.Unlock()
	if s.cfg.Logs == PluginLogs {
		return pluginLog(w, text, known || stored)
	}
	switch {
	case !stored && known:
		return notFound("Log doesn't exist")
	case !stored:
		return notFound("record not found")
	}
	w.Header().Set("Content-Type", "application/json") // plain text all the same
	for len(text) > 0 {
		n := min(len(text), chunk)
		_, _ = w.Write(text[:n]) // a client that left reads nothing
		_, _ = w.Write([]byte{'\n'})
		text = text[n:]
	}
	return nil
}

// pluginLog sends a log that another service keeps.
func pluginLog(w http.ResponseWriter, text []byte, known bool) error {
	w.Header().Set("Content-Type", "text/plain")
	if !known {
		http.Error(w, "rpc error: code = NotFound desc = record not found", http.StatusInternalServerError)
		return nil
	}
	_, _ = w.Write(text) // empty when nothing is stored
	return nil
}
