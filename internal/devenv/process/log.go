package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tailBytes is what an error quotes of a log: some dozen lines.
const tailBytes = 3 << 10

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the log's folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return f, nil
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// tail returns the last whole lines of the file, none from before start.
func tail(path string, start int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	from, cut := start, false
	if end := size(path); end-from > tailBytes {
		from, cut = end-tailBytes, true
	}
	data, err := io.ReadAll(io.NewSectionReader(f, from, tailBytes))
	if err != nil {
		return err.Error()
	}
	if i := bytes.IndexByte(data, '\n'); cut && i >= 0 {
		data = data[i+1:]
	}
	return string(bytes.TrimRight(data, "\n"))
}
