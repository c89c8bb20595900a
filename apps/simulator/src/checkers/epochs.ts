import type { Checker } from './checker.ts'

export const epochs: Checker = {
  name: 'epochs',
  proves:
    'An epoch has one leader, and the epochs on a disk never decrease, the current epoch never above the accepted one.',
  check({ quorum, epochs: seen }) {
    const wrong = [...(quorum?.violations ?? [])]
    const last = new Map<string, { accepted: number; current: number }>()
    for (const { server, at, accepted, current, isNew } of seen) {
      if (isNew) last.delete(server)
      const before = last.get(server)
      if (before !== undefined && (accepted < before.accepted || current < before.current))
        wrong.push(
          `${server} has epochs ${accepted} and ${current} on its disk at ${at.toFixed(1)} ms, and had ${before.accepted} and ${before.current}`,
        )
      if (current > accepted)
        wrong.push(
          `${server} has current epoch ${current} above its accepted epoch ${accepted} at ${at.toFixed(1)} ms`,
        )
      last.set(server, { accepted, current })
    }
    return wrong
  },
}
