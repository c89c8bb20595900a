import { expect, it } from 'vitest'
import { networkTransport } from '../transport.ts'
import { abortControllerFor } from './abort.ts'
import { LightAbortController } from './light-abort.ts'

it('an abort calls its listener once, and no listener that was removed', () => {
  const received: unknown[] = []
  const abort = new LightAbortController()
  abort.addEventListener('abort', () => received.push(abort.reason))
  abort.abort()
  abort.abort()
  expect([abort.aborted, received]).toEqual([true, [new Error('The attempt was cancelled')]])

  const left = new LightAbortController()
  left.addEventListener('abort', () => received.push('left'))
  left.removeEventListener()
  left.abort()
  expect(received.length).toBe(1)
})

it('third-party and wrapping transports get an AbortSignal of the platform', () => {
  const ours = networkTransport({})
  expect(abortControllerFor(ours)).toBeInstanceOf(LightAbortController)
  const wrapped = { ...ours, open: ours.open.bind(ours) }
  expect(abortControllerFor(wrapped).signal).toBeInstanceOf(AbortSignal)
  expect(abortControllerFor({ open: () => Promise.reject(new Error('no')) }).signal).toBeInstanceOf(
    AbortSignal,
  )
})
