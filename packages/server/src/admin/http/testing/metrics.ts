import type { TestServer } from '../../../testing/test-server.ts'

/** Returns the value of a sample; NaN where there is none. */
export function valueOf(text: string, sample: string): number {
  const line = text.split('\n').find((one) => one.startsWith(`${sample} `))
  return line === undefined ? NaN : Number(line.slice(sample.length + 1))
}

export const metricsOf = async (server: Pick<TestServer, 'http'>): Promise<string> =>
  (await server.http.request('/metrics')).text
