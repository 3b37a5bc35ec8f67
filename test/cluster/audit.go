package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// auditLogFile is the name of the audit log in the folder of a cluster.
const auditLogFile = "audit.log"

// DefaultAuditPolicy records every request, and the bodies of those that change
// something. It omits the stage of their arrival: each request has one line.
const DefaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [get, list, watch]
- level: Request
`

// auditArgs returns the flags for the audit log.
//
// The mode is blocking: the event is written before the end of the response, so that a
// client that has read the response finds the event. The other modes write it later.
// The log is not rotated, because its readers know one file (the size is in megabytes,
// and 0 means a hundred).
func auditArgs(policy, log string) []string {
	return []string{
		"--audit-policy-file", policy,
		"--audit-log-path", log,
		"--audit-log-format", "json",
		"--audit-log-mode", "blocking",
		"--audit-log-maxsize", "1000000",
	}
}

// AuditLines passes the lines of the audit log from an offset to take, until take
// returns an error. It ignores an incomplete line at the end, which the API server is
// still writing.
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
