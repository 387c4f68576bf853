package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Sleep waits for d, or fails as soon as the command is interrupted.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ErrInterrupted
	}
}

// SaveState replaces a small file of JSON, whole or not at all.
func SaveState(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := os.WriteFile(name+".new", append(text, '\n'), 0o600); err != nil {
		_ = os.Remove(name + ".new") // the disk may be full
		return err
	}
	return os.Rename(name+".new", name)
}

// LoadState reads such a file.
func LoadState(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// RemoveState removes such a file, if it exists.
func RemoveState(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
