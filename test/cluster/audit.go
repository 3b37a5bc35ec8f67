package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// auditLogFile is the audit log in the folder of a cluster.
const auditLogFile = "audit.log"

// DefaultAuditPolicy has every request in the audit log, and those that change
// something with their bodies. That a request has arrived is not an event of
// its own: each request is one line.
const DefaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [get, list, watch]
- level: Request
`

// auditArgs have the API server write the log.
//
// The mode is blocking: the event is written before the end of the response,
// so that a client that has read all of it can look the request up. The other
// modes write it some time later. The log is not rotated, since its readers know
// one file (the size is in megabytes, and 0 means a hundred).
func auditArgs(policy, log string) []string {
	return []string{
		"--audit-policy-file", policy,
		"--audit-log-path", log,
		"--audit-log-format", "json",
		"--audit-log-mode", "blocking",
		"--audit-log-maxsize", "1000000",
	}
}

// AuditLines gives the lines of the audit log that begin at a place or after it,
// until take gives an error. There, and at the end, the API server may just be
// writing: half a line is none.
func (c *Cluster) AuditLines(from int64, take func(line []byte) error) error {
	file, err := os.Open(c.auditLog)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(max(from-1, 0), io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	lines := bufio.NewReader(file)
	for skip := from > 0; ; skip = false {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !skip {
			err = take(line)
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
	}
}
