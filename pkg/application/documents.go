package application

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// compressAbove is the size in bytes above which a document is stored compressed: a ConfigMap holds
	// 1 MiB in all. Tools read the status without this project, so it is a text for as long as possible.
	compressAbove       = 64 << 10
	compressStatusAbove = 256 << 10
	// documentLimit bounds the bytes of an expanded document, elementLimit its fields and
	// elements: an empty object is two bytes of text, and many times that in memory.
	documentLimit = 8 << 20
	elementLimit  = 400_000
)

func drop(cm *corev1.ConfigMap, key string) {
	delete(cm.Data, key)
	delete(cm.BinaryData, key)
}

// encode stores a document as canonical JSON, compressed if it is large. It removes one that is not wanted.
func encode(cm *corev1.ConfigMap, key string, document any, wanted bool) error {
	drop(cm, key)
	if !wanted {
		return nil
	}
	text, err := canonical(document)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	most := compressAbove
	if key == StatusKey {
		most = compressStatusAbove
	}
	if len(text) <= most {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[key] = string(text)
		return nil
	}
	compressed, err := compress(text)
	if err != nil {
		return fmt.Errorf("compress %s: %w", key, err)
	}
	setBinary(cm, key, compressed)
	return nil
}

// read returns the text of a document, expanded if it is stored compressed.
func read(cm *corev1.ConfigMap, key string) ([]byte, error) {
	compressed, ok := cm.BinaryData[key]
	if !ok {
		return []byte(cm.Data[key]), nil
	}
	text, err := expand(compressed, documentLimit)
	if err != nil {
		return nil, fmt.Errorf("expand %s: %w", key, err)
	}
	return text, nil
}

// decode reads a document. Without a stored one, it changes nothing.
func decode(cm *corev1.ConfigMap, key string, document any) error {
	text, err := read(cm, key)
	if err != nil || len(text) == 0 {
		return err
	}
	if bytes.Count(text, []byte(","))+bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > elementLimit {
		return fmt.Errorf("decode %s: more than %d elements", key, elementLimit)
	}
	if err := utiljson.Unmarshal(text, document); err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	return nil
}

// canonical returns JSON with sorted keys and without HTML escapes, so that equal documents are equal bytes.
func canonical(document any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(document)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
