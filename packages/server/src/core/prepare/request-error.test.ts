import { expect, it } from 'vitest'
import { RequestError, reject } from './request-error.ts'

it('refuses with one error for each number, which remembers nothing of who was refused first', () => {
  const caught = [1, 1, 2].map((code) => {
    try {
      return reject(code)
    } catch (error) {
      return error as RequestError
    }
  })
  expect(caught[0]).toBe(caught[1])
  expect(caught.map((error) => RequestError.codeOf(error))).toEqual([1, 1, 2])
  expect(caught[0]!.stack).toBe('refused with 1')
})
