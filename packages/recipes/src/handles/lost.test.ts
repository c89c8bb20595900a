import { expect, it } from 'vitest'
import { StateError } from '@zabra/client/core'
import { LostError } from './lost.ts'

it('a lost right says why it ended, which one it was, and where', () => {
  const error = new LostError('The lock /a is lost', 'suspended', 7n, '/a/x')
  expect(error).toMatchObject({
    name: 'LostError',
    code: 'LOST',
    reason: 'suspended',
    token: 7n,
    path: '/a/x',
  })
  expect(error).toBeInstanceOf(StateError)
})
