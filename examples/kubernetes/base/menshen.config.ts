// Rules, roles and upstreams: docs/configuring.md.
export default {
  rules: [
    { path: '/', roles: ['*'] },
    { path: '/status', public: true },
  ],
}
