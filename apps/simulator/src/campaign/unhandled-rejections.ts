import type { RunReport } from '../simulation/run.ts'

/** Runs a plan and reports unhandled rejections, which would end a real process, as violations. */
export async function catchUnhandledRejections(run: () => Promise<RunReport>): Promise<RunReport> {
  const unhandled: string[] = []
  const record = (reason: unknown): void =>
    void unhandled.push(reason instanceof Error ? (reason.stack ?? reason.message) : String(reason))
  process.on('unhandledRejection', record)
  try {
    const result = await run()
    if (unhandled.length === 0) return result
    const more = unhandled.map((what) => ({ checker: 'unhandled', message: what }))
    return { ...result, violations: [...result.violations, ...more] }
  } finally {
    process.off('unhandledRejection', record)
  }
}
