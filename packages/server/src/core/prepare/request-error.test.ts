import { expect, it } from 'vitest'
import { RequestError, reject } from './request-error.ts'

it('reject throws one error for each code, whose stack retains nothing of the first request', () => {
  const caught = [1, 1, 2].map((code) => {
    try {
      return reject(code)
    } catch (error) {
      return error as RequestError
    }
  })
  expect(caught[0]).toBe(caught[1])
  expect(caught.map((error) => RequestError.codeOf(error))).toEqual([1, 1, 2])
  expect(caught[0]!.stack).toBe('rejected with 1')
})

it('the code of any other error is none: it is thrown again', () => {
  const defect = new TypeError('a defect')
  expect(() => RequestError.codeOf(defect)).toThrow(defect)
})
