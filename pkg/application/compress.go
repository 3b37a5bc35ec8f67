package application

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// MaxPlainBytes bounds the text of manifest and observer schema together, unless the manifest is compressed.
// The remaining part of the 1 MiB of a ConfigMap is for the status documents.
const MaxPlainBytes = 256 << 10

// The first bytes of gzip and of zstd. No text begins with them, because they are not UTF-8.
const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// IsCompressed reports whether a manifest is stored compressed, by gzip.
func IsCompressed(manifestText string) bool { return strings.HasPrefix(manifestText, gzipMagic) }

// ManifestText returns the text of a manifest, expanded if it is compressed. It has at most [manifest.MaxBytes].
func (s Spec) ManifestText() (string, error) {
	if !IsCompressed(s.Manifest) {
		return s.Manifest, nil
	}
	text, err := expand([]byte(s.Manifest), manifest.MaxBytes)
	if err != nil {
		return "", fmt.Errorf("the compressed text cannot be read: %w", err)
	}
	return string(text), nil
}

// CompressManifest compresses the manifest if the texts of the spec are larger than [MaxPlainBytes] without that.
func CompressManifest(cm *corev1.ConfigMap) error {
	text := cm.Data[ManifestKey]
	if len(text)+len(cm.Data[ObserverSchemaKey]) <= MaxPlainBytes || text == "" {
		return nil
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("compress %s: %w", ManifestKey, err)
	}
	delete(cm.Data, ManifestKey)
	setBinary(cm, ManifestKey, b.Bytes())
	return nil
}

func setBinary(cm *corev1.ConfigMap, key string, value []byte) {
	if cm.BinaryData == nil {
		cm.BinaryData = map[string][]byte{}
	}
	cm.BinaryData[key] = value
}

// compress compresses a document. Definitions repeat their descriptions far from each other, which only a window as
// large as that of zstd notices: gzip makes half as much again of them.
func compress(text []byte) ([]byte, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(text, nil), encoder.Close()
}

// expand returns the text of gzip or zstd, which has at most so many bytes.
func expand(compressed []byte, most int) ([]byte, error) {
	if bytes.HasPrefix(compressed, []byte(zstdMagic)) {
		limit := zstd.WithDecoderMaxMemory(uint64(most)) //nolint:gosec // a limit is not negative
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), limit)
		if err != nil {
			return nil, err
		}
		defer decoder.Close()
		return decoder.DecodeAll(compressed, nil)
	}
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return text, err
}
