import { expect, it } from 'vitest'
import {
  DamageError,
  DivergedFilesError,
  DivergenceError,
  FolderLockedError,
  LogFullError,
  RecoveryError,
} from './errors.ts'

it('an error about files says what it found, where, and what to do, and keeps its cause', () => {
  const cause = new Error('the cause')
  const damage = new DamageError('Expected a header', '/data/log.1', 16, 'Remove it.', { cause })
  expect(damage).toMatchObject({
    name: 'DamageError',
    file: '/data/log.1',
    offset: 16,
    action: 'Remove it.',
    message: 'Expected a header in /data/log.1 at byte 16. Remove it.',
    cause,
  })
  for (const Kind of [RecoveryError, DivergedFilesError]) {
    const error = new Kind('Expected a snapshot', '/data', 'Copy one.', { cause })
    expect(error).toMatchObject({
      name: 'RecoveryError',
      folder: '/data',
      action: 'Copy one.',
      message: 'Expected a snapshot in /data. Copy one.',
      cause,
    })
  }
  expect(new FolderLockedError('/data', 'process 7')).toMatchObject({
    code: 'ELOCKED',
    message: expect.stringMatching(/^The folder \/data is in use by process 7\. /),
  })
  expect(new DivergenceError(0x1_0000_001f)).toMatchObject({
    zxid: 0x1_0000_001f,
    message: expect.stringContaining('transaction 0x10000001f '),
  })
})

it.each([
  ['ENOSPC', 'No space is left'],
  ['EDQUOT', 'No space is left'],
  ['EMFILE', 'No file descriptor is left'],
  ['ENFILE', 'No file descriptor is left'],
])('a log that is full with %s says what is missing', (code, message) => {
  const cause = new Error('the cause')
  const error = new LogFullError('/data', code, { cause })
  expect(error.message).toMatch(message)
  expect([error.code, error.cause]).toEqual([code, cause])
})
