import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { LogOutput } from './log-output.ts'

/** Returns a stream whose reader has stopped until `read` is called. */
function stopped(): { stream: Writable; text: () => string; read: () => void } {
  let text = ''
  let held: (() => void) | undefined
  let isReading = false
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      text += chunk.toString()
      if (isReading) done()
      else held = done
    },
  })
  const read = (): void => {
    isReading = true
    held?.()
  }
  return { stream, text: () => text, read }
}

const drained = (stream: Writable): Promise<void> => new Promise((done) => stream.once('drain', done))

it('keeps a mebibyte of lines for a reader that has stopped, and tells how many are lost when it reads again', async () => {
  const { stream, text, read } = stopped()
  const told: number[] = []
  const output = new LogOutput(stream, (lost) => told.push(lost))
  const line = `${'x'.repeat(1023)}\n`
  for (let i = 0; i < 2000; i++) output.write(line)
  expect(output.lost).toBe(2000 - 1024)
  expect(told).toEqual([])
  const isDrained = drained(stream)
  read()
  await isDrained
  expect(told).toEqual([2000 - 1024])
  output.write('after\n')
  expect(text()).toBe(`${line.repeat(1024)}after\n`)
})

it('takes no line between lost ones, so that the gap is where it is told', async () => {
  const { stream, read, text } = stopped()
  const output: LogOutput = new LogOutput(stream, (lost) => output.write(`lost ${lost}\n`))
  output.write(`${'x'.repeat(1024 * 1024 - 1)}\n`)
  output.write('y'.repeat(100))
  output.write('z')
  const isDrained = drained(stream)
  read()
  await isDrained
  output.write('after\n')
  expect(text().slice(-20)).toMatch(/x\nlost 2\nafter\n$/)
})

it('writes lines of more than a mebibyte, and those after them', () => {
  let text = ''
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      text += chunk.toString()
      done()
    },
  })
  const output = new LogOutput(stream, () => {})
  const long = `${'x'.repeat(1024 * 1024)}\n`
  for (const line of [long, 'one\n', long, 'two\n']) output.write(line)
  expect([output.lost, text === `${long}one\n${long}two\n`]).toEqual([0, true])
})

it('takes a long line behind a short one that is not read yet, and goes on once both are', async () => {
  const { stream, text, read } = stopped()
  const output = new LogOutput(stream, () => {})
  for (const line of ['one\n', `${'x'.repeat(1024 * 1024)}\n`, 'lost\n']) output.write(line)
  const isDrained = drained(stream)
  read()
  await isDrained
  output.write('after\n')
  expect([output.lost, text().length, text().slice(-8)]).toEqual([1, 4 + 1024 * 1024 + 1 + 6, 'x\nafter\n'])
})

it('counts what comes after the reader has ended', async () => {
  const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
  const output = new LogOutput(stream, () => {})
  const failed = new Promise((done) => stream.once('error', done))
  output.write('one\n')
  await failed
  output.write('two\n')
  expect(output.lost).toBe(1)
})

it('goes on in a file once its disk has room again, and tells how many lines are lost', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'zabra-log-'))
  const path = join(folder, 'log')
  // Node writes to a file at once, and its stream takes nothing after an error.
  const full = new Writable({ write: (_chunk, _encoding, done) => done(new Error('ENOSPC')) })
  const failed = new Promise((resolve) => full.once('error', resolve))
  const stream = Object.assign(full, { fd: openSync(path, 'a') })
  const output: LogOutput = new LogOutput(stream, (lost) => output.write(`lost ${lost}\n`))
  output.write('cut\n')
  await failed
  const { fd } = stream
  stream.fd = openSync('/dev/full', 'w')
  output.write('one\n')
  output.write('two\n')
  closeSync(stream.fd)
  stream.fd = fd
  for (const line of ['three\n', 'four\n']) output.write(line)
  closeSync(fd)
  expect([output.lost, readFileSync(path, 'utf8')]).toEqual([2, '\nlost 2\nthree\nfour\n'])
  rmSync(folder, { recursive: true })
})
