import { expect, it } from 'vitest'
import { ZooKeeperError } from '@zabra/client/core'
import { LostError } from './lost.ts'

it('a LostError has the reason, the token and the path', () => {
  const error = new LostError('The lock /a is lost', 'suspended', 7n, '/a/x')
  expect(error).toMatchObject({
    name: 'LostError',
    code: 'LOST',
    reason: 'suspended',
    token: 7n,
    path: '/a/x',
  })
  expect(error).toBeInstanceOf(ZooKeeperError)
})
