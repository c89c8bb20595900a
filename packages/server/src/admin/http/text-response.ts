import type { HttpResponse } from '@zabra/runtime'

/** Returns an answer in plain text, which is not stored. */
export const text = (status: number, body: string): HttpResponse => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  body,
})
