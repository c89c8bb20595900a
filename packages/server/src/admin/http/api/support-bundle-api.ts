import type { ApiRoute } from './api-route.ts'

/** What support asks for. */
export const supportBundleRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/support-bundle',
    method: 'GET',
    role: 'admin',
    summary:
      'Sends a tar.gz with what support asks for: version, platform, settings, state, metrics, the last lines of the log, slow requests, the busiest keys, findings, the files of the data and log folders by name and size, and MANIFEST.txt, which lists what is in it and what is left out. It has no data and no secret. One at a time.',
    type: 'application/gzip',
    statuses: [200],
    run: (call) => call.bundles.begin(call),
  },
]
