package driver

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// ErrNoDriver reports that there is no CUDA driver on this machine.
var ErrNoDriver = errors.New("no CUDA driver")

// ErrDriverTooOld reports that the driver is older than MinVersion or lacks a function of it.
var ErrDriverTooOld = errors.New("CUDA driver too old")

// ErrContextLost matches every error after which a context is dead: all later calls on it fail, its memory is lost, and
// only a new process can get a new one. Examples are an illegal access of a kernel and a GPU that has fallen off the
// bus.
var ErrContextLost = errors.New("CUDA context lost")

// Code is a CUresult other than success. It is an error so that errors.Is can compare with it.
type Code int32

// The codes that callers distinguish.
const (
	ErrInvalidValue          Code = 1
	ErrOutOfMemory           Code = 2
	ErrNoDevice              Code = 100 // no GPU, or CUDA_VISIBLE_DEVICES hides them all
	ErrInvalidContext        Code = 201 // the goroutine is not bound, or an IPC handle was opened by its own process
	ErrPeerAccessUnsupported Code = 217 // the two GPUs cannot map each other's memory
	ErrInvalidPTX            Code = 218 // Error.Detail holds the compiler's log
	ErrUnsupportedPTX        Code = 222 // the PTX is newer than the driver
	ErrNotFound              Code = 500 // a module has no function of that name
	ErrPeerAccessEnabled     Code = 704 // EnablePeer was called before for the same contexts
	ErrNotSupported          Code = 801 // for example IPC, where the system does not offer it
)

const notReady Code = 600

// Error returns the code alone. Its text comes from the driver, see Error.
func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", int32(c)) }

// lost reports whether a context is dead after c.
func (c Code) lost() bool {
	switch c {
	case 214, // uncorrectable ECC error
		220,                     // uncorrectable NVLink error
		700,                     // illegal address
		702,                     // launch timeout
		709,                     // context is destroyed
		710,                     // device-side assert
		714, 715, 716, 717, 718, // illegal stack, instruction, alignment, address space, program counter
		719: // launch failed
		return true
	}
	return false
}

// Error is a driver call that failed.
type Error struct {
	Op     string // the function of the driver API, such as "cuMemAlloc"
	Code   Code
	Name   string // such as "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // the driver's text for it, such as "out of memory"
	Detail string // the caller's request, or the log of the PTX compiler; often empty
}

// Error returns the complete message, on one line unless the detail has several.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s)", e.Op, e.Text, e.Name)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is reports whether target is the code, or ErrContextLost if the code means that.
func (e *Error) Is(target error) bool {
	if target == ErrContextLost {
		return e.Code.lost()
	}
	return target == error(e.Code)
}

// fail returns the error for a code that a function returned.
func (d *Driver) fail(f *function, code Code) *Error {
	op, _, _ := strings.Cut(f.name, "_v")
	e := &Error{Op: op, Code: code, Name: d.text(&d.api.getErrorName, code), Text: d.text(&d.api.getErrorString, code)}
	if e.Name == "" {
		e.Name = code.Error()
	}
	if e.Text == "" {
		e.Text = "no text from the driver"
	}
	return e
}

// text returns the driver's name or text for a code, or "" if the driver does not know the code.
func (d *Driver) text(f *function, code Code) string {
	var s *byte
	if f.call(uintptr(uint32(code)), uintptr(unsafe.Pointer(&s))) != 0 || s == nil {
		return ""
	}
	return goString(s)
}

// goString copies a C string.
func goString(s *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(s, n))
}
