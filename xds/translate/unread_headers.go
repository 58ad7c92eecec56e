package translate

import "hangar.io/glidepath/xds/model"

// streamUnread are headers of browsers and proxies that nothing behind a stream
// reads. Envoy holds each header of a call for as long as the call lasts, in 350
// bytes at least, and of a stream that is hours. (User-Agent is for spans, and
// X-Forwarded-Proto is what Envoy makes a span's URL of when the stream ends.)
var streamUnread = []string{
	"accept",
	"accept-encoding",
	"accept-language",
	"cache-control",
	"dnt",
	"origin",
	"pragma",
	"priority",
	"referer",
	"sec-ch-ua",
	"sec-ch-ua-mobile",
	"sec-ch-ua-platform",
	"sec-fetch-dest",
	"sec-fetch-mode",
	"sec-fetch-site",
	"sec-fetch-storage-access",
	"sec-gpc",
	"x-forwarded-for",
}

// unreadHeaders are not sent on: those of a stream that its backend has no use
// for, and none of any other call, which is soon over.
func unreadHeaders(r model.Route) []string {
	if !r.Stream {
		return nil
	}
	return streamUnread
}
