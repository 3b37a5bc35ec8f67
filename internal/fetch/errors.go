package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// ErrRefused marks the errors that come from a rule. They persist until the Application,
// the file or the agent's flags change; after any other error a new try may succeed.
var ErrRefused = errors.New("refused")

// refusal is an error that is [ErrRefused].
type refusal string

func (r refusal) Error() string        { return "refused: " + string(r) }
func (r refusal) Is(target error) bool { return target == ErrRefused }

// reasonOf returns why a request has no answer. It uses no text of a library's error,
// which may contain addresses, URLs and bytes that the host has sent.
func reasonOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused, ok := errors.AsType[refusal](err); ok {
		return refused
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		if name.IsNotFound {
			return errors.New("no name server knows the host")
		}
		return errors.New("the name servers do not answer")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return untrusted(err)
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the answer was cut off")
	}
	return errors.New("the host does not speak HTTP/1.1 over TLS 1.2 or newer, or not as it should")
}

// untrusted returns what is wrong with a certificate.
func untrusted(err error) error {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return errors.New("the certificate is for another host")
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return errors.New("the certificate is of an authority that the agent does not trust")
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return errors.New("the certificate has expired, or is not yet valid")
	}
	return errors.New("the certificate is not valid")
}
