package driver

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// ErrNoDriver says that there is no CUDA driver on this machine.
var ErrNoDriver = errors.New("no CUDA driver")

// ErrDriverTooOld says that the driver is older than MinVersion or lacks a function of it.
var ErrDriverTooOld = errors.New("CUDA driver too old")

// ErrContextLost matches every error after which a context is dead: all later calls on it fail, its memory is lost,
// and only a new process gets a new one. A kernel's illegal access is one, a GPU that falls away another.
var ErrContextLost = errors.New("CUDA context lost")

// Code is a CUresult other than success. It is an error so that errors.Is can compare with it.
type Code int32

// The codes that callers tell apart.
const (
	ErrInvalidValue          Code = 1
	ErrOutOfMemory           Code = 2
	ErrNoDevice              Code = 100 // no GPU, or CUDA_VISIBLE_DEVICES hides them all
	ErrInvalidContext        Code = 201 // the goroutine is not bound, or an IPC handle was opened by its own process
	ErrPeerAccessUnsupported Code = 217 // the two GPUs cannot map each other's memory
	ErrInvalidPTX            Code = 218 // see Error.Detail for the compiler's words
	ErrUnsupportedPTX        Code = 222 // the PTX is newer than the driver
	ErrInvalidHandle         Code = 400
	ErrNotFound              Code = 500 // a module has no function of that name
	ErrNotPermitted          Code = 800
	ErrNotSupported          Code = 801 // IPC among others, where the system does not offer it
)

const notReady Code = 600

// Error names the code alone: the text for it comes from the driver, see Error.
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
	Op     string // the function of the driver API, as "cuMemAlloc"
	Code   Code
	Name   string // as "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // the driver's text for it, as "out of memory"
	Detail string // what the caller wanted, or the log of the PTX compiler; often empty
}

// Error returns all there is to say, in one line unless the detail has several.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%s)", e.Op, e.Text, e.Name)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is matches the code, and ErrContextLost if the code means that.
func (e *Error) Is(target error) bool {
	if target == ErrContextLost {
		return e.Code.lost()
	}
	return target == error(e.Code)
}

// fail makes the error for a code that a function returned.
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

// text asks the driver for the name or the text of a code; empty if it does not know the code.
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
